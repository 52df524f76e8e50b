//! `plot`: reads one chart as JSON from standard input and writes it as SVG.
//!
//! Lines: `{out, title, x, y, log_x, log_y, marks, series: [{name, points: [[x, y], …]}]}`.
//! Bars:  `{out, title, y, names: […], bars: [{name, values: […]}]}`, on a logarithmic axis when the values differ much.
//!
//! The drawing is done by `plotters` with nothing but its SVG backend: it needs no fonts and no other language, and
//! weighs three small crates.

use std::error::Error;
use std::io;
use std::ops::Range;
use std::process::ExitCode;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use serde::Deserialize;

/// A chart: with `series` it has lines, with `bars` bars.
#[derive(Deserialize)]
struct Chart {
    out: String,
    title: String,
    #[serde(default)]
    x: String,
    y: String,
    #[serde(default)]
    log_x: bool,
    #[serde(default)]
    log_y: bool,
    /// Values on the x axis that get a label; without any, round ones are chosen.
    #[serde(default)]
    marks: Vec<f64>,
    #[serde(default)]
    series: Vec<Lines>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    bars: Vec<Bars>,
}

#[derive(Deserialize)]
struct Lines {
    name: String,
    points: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Bars {
    name: String,
    values: Vec<f64>,
}

const SIZE: (u32, u32) = (860, 520);
/// Colours that people who confuse red and green can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// One axis, linear or logarithmic: one type for all charts.
struct Axis {
    log: bool,
    range: Range<f64>,
    marks: Vec<f64>,
    /// Labels that stand in place of numbers, one a unit.
    names: Vec<String>,
}

impl Axis {
    /// An axis that shows all `values`. A linear one begins at zero: throughput and bars must not exaggerate.
    fn new(values: impl Iterator<Item = f64>, log: bool, marks: &[f64]) -> Self {
        let (low, high) = values
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let range = match (log, marks.is_empty()) {
            (true, false) => low * 0.8..high * 1.25,
            (true, true) => power(low.log10().floor())..power((high * 1.1).log10().ceil()),
            // Room above the data for the legend.
            (false, _) => 0.0..if high > 0.0 { high * 1.3 } else { 1.0 },
        };
        let marks = if !marks.is_empty() {
            marks.to_vec()
        } else if log {
            (range.start.log10().round() as i32..=range.end.log10().round() as i32)
                .map(|e| power(e.into()))
                .collect()
        } else {
            RangedCoordf64::from(range.clone()).key_points(8)
        };
        Self { log, range, marks, names: Vec::new() }
    }

    /// An axis of names: each is one unit wide and has its label below the middle.
    fn of_names(names: &[String]) -> Self {
        let marks = (0..names.len()).map(|index| index as f64 + 0.5).collect();
        Self { log: false, range: 0.0..names.len() as f64, marks, names: names.to_vec() }
    }
}

fn power(exponent: f64) -> f64 {
    10f64.powf(exponent)
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = |value: f64| {
            if self.log { value.max(1e-9).ln() } else { value }
        };
        let (start, end) = (place(self.range.start), place(self.range.end));
        let share = (place(*value) - start) / (end - start);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Asked for light lines too, plotters would draw the bold ones twice.
        if hint.weight().allow_light_points() { Vec::new() } else { self.marks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        if !self.names.is_empty() {
            return self.names.get(*value as usize).cloned().unwrap_or_default();
        }
        if value.abs() < 10.0 && value.fract() != 0.0 {
            return format!("{value:.1}");
        }
        let digits = format!("{value:.0}");
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    }
}

fn main() -> ExitCode {
    match serde_json::from_reader(io::stdin()).map_err(Into::into).and_then(|chart| draw(&chart)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plot: {error}");
            ExitCode::FAILURE
        }
    }
}

fn draw(chart: &Chart) -> Result<(), Box<dyn Error>> {
    if chart.bars.is_empty() { draw_lines(chart) } else { draw_bars(chart) }
}

fn draw_lines(chart: &Chart) -> Result<(), Box<dyn Error>> {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let x = Axis::new(points().map(|point| point.0), chart.log_x, &chart.marks);
    let y = Axis::new(points().map(|point| point.1), chart.log_y, &[]);
    let area = SVGBackend::new(&chart.out, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut canvas = ChartBuilder::on(&area)
        .caption(&chart.title, ("sans-serif", 20))
        .margin(14)
        .margin_right(36)
        .x_label_area_size(44)
        .y_label_area_size(80)
        .build_cartesian_2d(x, y)?;
    canvas
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .draw()?;
    for (index, series) in chart.series.iter().enumerate() {
        let style = COLOURS[index % COLOURS.len()].stroke_width(2);
        canvas
            .draw_series(LineSeries::new(series.points.iter().copied(), style))?
            .label(&series.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
        if !chart.marks.is_empty() {
            canvas.draw_series(
                series.points.iter().map(|point| Circle::new(*point, 4, style.filled())),
            )?;
        }
    }
    legend(&mut canvas)?;
    area.present()?;
    Ok(())
}

fn draw_bars(chart: &Chart) -> Result<(), Box<dyn Error>> {
    let values = || {
        chart.bars.iter().flat_map(|bars| bars.values.iter().copied()).filter(|value| *value > 0.0)
    };
    let (low, high) =
        values().fold((f64::MAX, 0f64), |(low, high), value| (low.min(value), high.max(value)));
    let y = Axis::new(values(), high > 50.0 * low, &[]);
    let x = Axis::of_names(&chart.names);
    let bottom = y.range.start;
    let area = SVGBackend::new(&chart.out, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut canvas = ChartBuilder::on(&area)
        .caption(&chart.title, ("sans-serif", 20))
        .margin(14)
        .margin_right(36)
        .x_label_area_size(44)
        .y_label_area_size(80)
        .build_cartesian_2d(x, y)?;
    canvas
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .y_desc(&chart.y)
        .x_label_style(("sans-serif", 11))
        .draw()?;
    let width = 0.8 / chart.bars.len() as f64;
    for (index, bars) in chart.bars.iter().enumerate() {
        let style = COLOURS[index % COLOURS.len()].filled();
        let left = |group: usize| group as f64 + 0.1 + width * index as f64;
        let boxes = bars.values.iter().enumerate().filter(|(_, value)| **value > 0.0).map(
            |(group, value)| {
                Rectangle::new([(left(group), bottom), (left(group) + width, *value)], style)
            },
        );
        canvas
            .draw_series(boxes)?
            .label(&bars.name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], style));
        let texts = bars.values.iter().enumerate().filter(|(_, value)| **value > 0.0).map(
            |(group, value)| {
                let digits = if *value < 100.0 { 1 } else { 0 };
                EmptyElement::at((left(group), *value))
                    + Text::new(format!("{value:.digits$}"), (2, -13), ("sans-serif", 11))
            },
        );
        canvas.draw_series(texts)?;
    }
    legend(&mut canvas)?;
    area.present()?;
    Ok(())
}

/// The box that says which colour is which.
fn legend<'a, 'b: 'a, X: Ranged, Y: Ranged>(
    canvas: &mut ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>,
) -> Result<(), Box<dyn Error>> {
    canvas
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 13))
        .draw()?;
    Ok(())
}
