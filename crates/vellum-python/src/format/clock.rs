//! `asctime`: the second is formatted once, by Python, and used for all records of that second.

use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

use super::stdlib::Stdlib;

/// How a formatter shows the time.
pub(crate) struct Clock {
    /// `time.localtime` or `time.gmtime`.
    converter: Py<PyAny>,
    /// For `time.strftime`.
    format: Py<PyString>,
    /// Whether `,123` follows.
    has_msecs: bool,
    /// The second formatted last. Taken only while the GIL is held, and never while Python code
    /// runs.
    newest: Mutex<Option<(i64, String)>>,
}

impl Clock {
    /// The clock of a formatter of the standard library; `None` where it is an unusual one.
    pub(crate) fn of(stdlib: &Stdlib, formatter: &Bound<'_, PyAny>) -> PyResult<Option<Clock>> {
        let converter = formatter.getattr("converter")?;
        let date_format = formatter.getattr("datefmt")?;
        let has_date_format = date_format.is_truthy()?;
        let msec_format = formatter.getattr("default_msec_format")?;
        let has_msecs = !has_date_format && msec_format.is_truthy()?;
        let is_usual = converter.is(&stdlib.localtime) || converter.is(&stdlib.gmtime);
        if !is_usual || (has_msecs && !msec_format.eq("%s,%03d")?) {
            return Ok(None);
        }
        let format = match has_date_format {
            true => date_format,
            false => formatter.getattr("default_time_format")?,
        };
        let Ok(format) = format.cast_into::<PyString>() else { return Ok(None) };
        let (converter, format) = (converter.unbind(), format.unbind());
        Ok(Some(Clock { converter, format, has_msecs, newest: Mutex::new(None) }))
    }

    /// The time of `record`; `None` where only Python knows how to show it.
    pub(crate) fn show(
        &self,
        stdlib: &Stdlib,
        record: &Bound<'_, PyAny>,
    ) -> PyResult<Option<String>> {
        let py = record.py();
        let Some(created) = float(&record.getattr(intern!(py, "created"))?) else {
            return Ok(None);
        };
        let mut shown = self.show_second(stdlib, py, created.floor() as i64)?;
        if self.has_msecs {
            let msecs = float(&record.getattr(intern!(py, "msecs"))?);
            let Some(msecs) = msecs.filter(|msecs| (0.0..1000.0).contains(msecs)) else {
                return Ok(None);
            };
            let digits = msecs as u32;
            shown.push(',');
            shown.extend([100, 10, 1].map(|unit| char::from(b'0' + (digits / unit % 10) as u8)));
        }
        Ok(Some(shown))
    }

    fn show_second(&self, stdlib: &Stdlib, py: Python<'_>, second: i64) -> PyResult<String> {
        if let Some((newest, shown)) = &*self.newest.lock().unwrap_or_else(PoisonError::into_inner)
            && *newest == second
        {
            return Ok(shown.clone());
        }
        let time = self.converter.bind(py).call1((second,))?;
        let shown = stdlib.strftime.bind(py).call1((&self.format, time))?;
        let shown = shown.cast::<PyString>()?.to_str()?.to_owned();
        let newest = Some((second, shown.clone()));
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = newest;
        Ok(shown)
    }
}

/// The value of a `float` of no other class.
fn float(value: &Bound<'_, PyAny>) -> Option<f64> {
    if value.is_exact_instance_of::<PyFloat>() { value.extract().ok() } else { None }
}
