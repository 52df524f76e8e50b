//! What the library says on stderr: one line, `preloom:` in front, by a raw write.

use super::linux::syscall;
use core::fmt::{self, Write};

/// A line built on the stack; longer text is cut.
struct Line {
    bytes: [u8; 512],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.length;
        let take = text.len().min(room);
        self.bytes[self.length..self.length + take].copy_from_slice(&text.as_bytes()[..take]);
        self.length += take;
        Ok(())
    }
}

/// Writes `preloom: <message>` and a newline to stderr.
pub fn line(message: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 512], length: 0 };
    let _ = line.write_str("preloom: ");
    let _ = line.write_fmt(message);
    line.bytes[line.length] = b'\n';
    // SAFETY: the buffer is valid for that length. A closed stderr has nobody to be told.
    let _ = unsafe { syscall!(write, 2, line.bytes.as_ptr(), line.length + 1) };
}

/// `report!("…", args)`: see [`line`].
macro_rules! report {
    ($($arg:tt)*) => { $crate::sys::report::line(format_args!($($arg)*)) };
}
pub(crate) use report;
