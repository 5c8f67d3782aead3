//! Formatting log records without Python code, where the outcome is known to be the same.
//!
//! `logging.Formatter` with a `%` style is imitated byte for byte; `template` is its format string
//! `clock` its `asctime`, and `message` fills in arguments. Everything that is not known exactly
//! (another class of formatter or record, a replaced method, a traceback, an unusual value) is left
//! to Python: then nothing has been written, and [`Formatters::format`] says `false`.

mod clock;
mod digits;
mod message;
mod prepared;
mod record;
mod stdlib;
mod template;

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use prepared::Prepared;
use record::Fields;
use stdlib::Stdlib;

/// The formatter used last, taken apart.
#[derive(Default)]
pub(crate) struct Formatters {
    /// See [locks](crate#locks).
    newest: Mutex<Option<Arc<Prepared>>>,
}

impl Formatters {
    /// Writes `record`, formatted by `formatter`, and a newline; `false` if Python has to.
    pub(crate) fn format(
        &self,
        record: &Bound<'_, PyAny>,
        formatter: &Bound<'_, PyAny>,
        line: &mut Vec<u8>,
    ) -> PyResult<bool> {
        let stdlib = Stdlib::get(record.py())?;
        if !stdlib.is_plain_record(record)? {
            return Ok(false);
        }
        let formatter = self.or_default(formatter)?;
        let prepared = self.prepared(stdlib, &formatter)?;
        if !prepared.write(stdlib, &Fields(record), line)? {
            return Ok(false);
        }
        line.push(b'\n');
        Ok(true)
    }

    /// `formatter`, or the one that `logging` uses where there is none.
    pub(crate) fn or_default<'py>(
        &self,
        formatter: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if formatter.is_none() {
            let stdlib = Stdlib::get(formatter.py())?;
            return Ok(stdlib.default_formatter.bind(formatter.py()).clone());
        }
        Ok(formatter.clone())
    }

    fn prepared(&self, stdlib: &Stdlib, formatter: &Bound<'_, PyAny>) -> PyResult<Arc<Prepared>> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(prepared) = newest
            && prepared.is_for(formatter)?
        {
            return Ok(prepared);
        }
        let prepared = Arc::new(Prepared::new(stdlib, formatter)?);
        let replaced = self
            .newest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(Arc::clone(&prepared));
        // Only now, with the lock free: it may be the last reference to Python objects.
        drop(replaced);
        Ok(prepared)
    }
}
