//! The command line, and the one check that an option and its variable share.
//!
//! Each option has a variable that the library reads. An option wins over its variable; whichever of the two
//! counts is checked here, before the program starts, with the limits that the library has.

use crate::failure::{Failure, USAGE};
use clap::Parser;
use std::ffi::{OsStr, OsString};

/// Runs a multi-threaded program on green threads.
///
/// PROGRAM runs as it would without preloom, except that each thread it creates is a coroutine and each call that
/// would block a thread lets another one run. The exit status is the program's.
#[derive(Debug, Parser)]
#[command(name = "preloom", version, override_usage = USAGE_LINE, after_help = VARIABLES)]
pub struct Options {
    /// Kernel threads that run the program's threads, 1 to 1024 [default: the CPUs it may use]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub workers: Option<OsString>,

    /// Stack of a thread that does not ask for a size, 16K to 1G, in bytes or with K, M or G [default: as without
    /// preloom]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub stack: Option<OsString>,

    /// green: threads are coroutines; native: they stay kernel threads [default: green]
    #[arg(long, value_name = "green|native", allow_hyphen_values = true)]
    pub threads: Option<OsString>,

    /// Print counters to standard error when the program ends
    #[arg(long)]
    pub stats: bool,

    /// The program, looked up in PATH as a shell does, and its arguments
    #[arg(value_names = ["PROGRAM", "ARGS"], num_args = 1.., required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

const USAGE_LINE: &str = "preloom [--workers N] [--stack SIZE] [--threads green|native] [--stats] [--] PROGRAM [ARGS...]";

const VARIABLES: &str = "\
Environment:
  PRELOOM_WORKERS, PRELOOM_STACK, PRELOOM_THREADS   what the options of these names say
  PRELOOM_STATS=0|1                                 1 is --stats
  PRELOOM_LIB                                       libpreloom.so, if it is not found by itself

Exit status: the program's; 2 if an option or variable is wrong; 126 if PROGRAM cannot be run on
preloom; 127 if it is not found.";

/// A variable of the library: its name, and what it may be.
struct Setting {
    option: &'static str,
    variable: &'static str,
    allowed: &'static str,
    is_valid: fn(&str) -> bool,
}

const WORKERS: Setting = Setting {
    option: "--workers",
    variable: "PRELOOM_WORKERS",
    allowed: "1 to 1024",
    is_valid: |text| number(text).is_some_and(|count| (1..=1024).contains(&count)),
};

const STACK: Setting = Setting {
    option: "--stack",
    variable: "PRELOOM_STACK",
    allowed: "16K to 1G, bytes or with K, M or G",
    is_valid: |text| size(text).is_some_and(|bytes| (16 << 10..=1 << 30).contains(&bytes)),
};

const THREADS: Setting = Setting {
    option: "--threads",
    variable: "PRELOOM_THREADS",
    allowed: "green or native",
    is_valid: |text| matches!(text, "green" | "native"),
};

const STATS: Setting = Setting {
    option: "--stats",
    variable: "PRELOOM_STATS",
    allowed: "0 or 1",
    is_valid: |text| matches!(text, "0" | "1"),
};

impl Options {
    /// The variables to set for the program, in the order of the options.
    ///
    /// `variable` gives the value of an environment variable. A bad value, of an option or of a variable whose
    /// option was not given, is a failure.
    pub fn environment(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let stats = self.stats.then(|| OsString::from("1"));
        let given = [
            (WORKERS, self.workers.as_deref()),
            (STACK, self.stack.as_deref()),
            (THREADS, self.threads.as_deref()),
            (STATS, stats.as_deref()),
        ];
        let mut environment = Vec::new();
        for (setting, value) in given {
            if let Some(value) = value {
                setting.check(value, &format!("{} ", setting.option))?;
                environment.push((setting.variable, value.to_owned()));
            } else if let Some(value) = variable(setting.variable) {
                setting.check(&value, &format!("{}=", setting.variable))?;
            }
        }
        Ok(environment)
    }
}

impl Setting {
    fn check(&self, value: &OsStr, written: &str) -> Result<(), Failure> {
        if value.to_str().is_some_and(self.is_valid) {
            return Ok(());
        }
        let value = value.display();
        Err(Failure::new(
            USAGE,
            format!("{written}{value} is not valid: allowed is {}", self.allowed),
        ))
    }
}

/// A decimal number without a sign.
fn number(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// A number of bytes, with or without a unit.
fn size(text: &str) -> Option<u64> {
    let unit = match text.as_bytes().last()? {
        b'K' | b'k' => 1 << 10,
        b'M' | b'm' => 1 << 20,
        b'G' | b'g' => 1 << 30,
        _ => return number(text),
    };
    number(&text[..text.len() - 1])?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Options {
        Options::try_parse_from([&["preloom"], words].concat()).expect("a valid command line")
    }

    /// `environment()` with no variable set.
    fn environment(words: &[&str]) -> Result<Vec<(&'static str, OsString)>, Failure> {
        parse(words).environment(|_| None)
    }

    #[test]
    fn everything_after_the_program_is_the_programs() {
        for (words, expected) in [
            (&["prog", "--workers", "x", "--help"][..], &["prog", "--workers", "x", "--help"][..]),
            (&["--stats", "--", "prog", "-v"], &["prog", "-v"]),
            (&["prog", "--", "-v"], &["prog", "--", "-v"]),
            (&["--", "prog", "--", "-v"], &["prog", "--", "-v"]),
            (&["--", "--stats"], &["--stats"]),
        ] {
            assert_eq!(parse(words).command, expected, "{words:?}");
        }
    }

    #[test]
    fn a_program_is_required() {
        assert!(Options::try_parse_from(["preloom", "--stats"]).is_err());
        assert!(Options::try_parse_from(["preloom"]).is_err());
    }

    #[test]
    fn an_unknown_option_is_not_taken_for_the_program() {
        assert!(Options::try_parse_from(["preloom", "--wrokers", "4", "prog"]).is_err());
    }

    #[test]
    fn options_become_variables() {
        assert_eq!(environment(&["prog"]), Ok(vec![]));
        assert_eq!(
            environment(&[
                "--workers=4",
                "--stack",
                "64K",
                "--threads",
                "native",
                "--stats",
                "prog"
            ]),
            Ok(vec![
                ("PRELOOM_WORKERS", "4".into()),
                ("PRELOOM_STACK", "64K".into()),
                ("PRELOOM_THREADS", "native".into()),
                ("PRELOOM_STATS", "1".into()),
            ])
        );
    }

    #[test]
    fn a_bad_option_is_named_with_what_is_allowed() {
        assert_eq!(
            environment(&["--workers", "0", "prog"]),
            Err(Failure::new(2, "--workers 0 is not valid: allowed is 1 to 1024"))
        );
    }

    #[test]
    fn a_bad_variable_is_named_with_what_is_allowed() {
        let variable = |name: &str| (name == "PRELOOM_STATS").then(|| OsString::from("yes"));
        assert_eq!(
            parse(&["prog"]).environment(variable),
            Err(Failure::new(2, "PRELOOM_STATS=yes is not valid: allowed is 0 or 1"))
        );
    }

    #[test]
    fn an_option_wins_over_its_variable() {
        let variable = |name: &str| (name == "PRELOOM_WORKERS").then(|| OsString::from("nonsense"));
        assert_eq!(
            parse(&["--workers", "2", "prog"]).environment(variable),
            Ok(vec![("PRELOOM_WORKERS", "2".into())])
        );
    }

    #[test]
    fn limits() {
        for (setting, valid, invalid) in [
            (WORKERS, &["1", "1024"][..], &["0", "1025", "-1", "+1", "4K", "", " 1", "1.5"][..]),
            (
                STACK,
                &["16384", "16K", "16k", "1G", "1024M", "8m"],
                &["16383", "15K", "1025M", "2G"],
            ),
            (STACK, &["65537"], &["", "K", "-1", "+64K", "1T", "64 K", "0x10000", "99999999999G"]),
            (THREADS, &["green", "native"], &["", "Green", "blue"]),
            (STATS, &["0", "1"], &["", "2", "yes"]),
        ] {
            for text in valid {
                assert!((setting.is_valid)(text), "{} {text}", setting.option);
            }
            for text in invalid {
                assert!(!(setting.is_valid)(text), "{} {text}", setting.option);
            }
        }
    }
}
