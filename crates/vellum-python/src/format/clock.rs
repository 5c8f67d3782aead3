//! `asctime`: the second is formatted once, by Python, and used for all records of that second; one
//! text serves all records of a millisecond.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

use super::record::Fields;
use super::stdlib::Stdlib;

/// How a formatter shows the time.
pub(crate) struct Clock {
    /// `time.localtime` or `time.gmtime`.
    converter: Py<PyAny>,
    /// For `time.strftime`.
    format: Py<PyString>,
    /// Whether `,123` follows.
    has_msecs: bool,
    /// The moment that was shown last, and its text. See [locks](crate#locks).
    newest: Mutex<Option<(Moment, Py<PyString>)>>,
}

#[derive(Clone, Copy, PartialEq)]
struct Moment {
    second: i64,
    /// `None` where they are not shown.
    msecs: Option<u16>,
}

/// Bytes of `,123`.
const MSECS_LEN: usize = 4;

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

    /// The time of a record; `None` where only Python knows how to show it.
    pub(crate) fn show<'py>(
        &self,
        stdlib: &Stdlib,
        record: &Fields<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        let py = record.py();
        let Some(created) = float(record.get(intern!(py, "created"))?) else { return Ok(None) };
        let mut moment = Moment { second: created.floor() as i64, msecs: None };
        if self.has_msecs {
            let msecs = float(record.get(intern!(py, "msecs"))?);
            let Some(msecs) = msecs.filter(|msecs| (0.0..1000.0).contains(msecs)) else {
                return Ok(None);
            };
            moment.msecs = Some(msecs as u16);
        }
        let newest = self.newest().as_ref().map(|(at, shown)| (*at, shown.bind(py).clone()));
        let shown = match newest {
            Some((at, shown)) if at == moment => return Ok(Some(shown)),
            Some((at, shown)) if at.second == moment.second => moment.show(at.second_of(&shown)?),
            _ => moment.show(self.second(stdlib, py, moment.second)?.to_str()?),
        };
        let shown = PyString::new(py, &shown);
        let replaced = self.newest().replace((moment, shown.clone().unbind()));
        drop(replaced);
        Ok(Some(shown))
    }

    fn newest(&self) -> MutexGuard<'_, Option<(Moment, Py<PyString>)>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn second<'py>(
        &self,
        stdlib: &Stdlib,
        py: Python<'py>,
        second: i64,
    ) -> PyResult<Bound<'py, PyString>> {
        let time = self.converter.bind(py).call1((second,))?;
        Ok(stdlib.strftime.bind(py).call1((&self.format, time))?.cast_into()?)
    }
}

impl Moment {
    /// The text of the moment, where `second` is the text of its second.
    fn show(self, second: &str) -> String {
        let mut shown = String::with_capacity(second.len() + MSECS_LEN);
        shown.push_str(second);
        if let Some(msecs) = self.msecs {
            let digit = |unit| b'0' + (msecs / unit % 10) as u8;
            shown.extend([b',', digit(100), digit(10), digit(1)].map(char::from));
        }
        shown
    }

    /// The text of the second in `shown`.
    fn second_of<'text>(self, shown: &'text Bound<'_, PyString>) -> PyResult<&'text str> {
        let shown = shown.to_str()?;
        Ok(&shown[..shown.len() - self.msecs.map_or(0, |_| MSECS_LEN)])
    }
}

/// The value of a `float` of no other class.
fn float(value: Option<Bound<'_, PyAny>>) -> Option<f64> {
    value.and_then(|value| value.cast_exact::<PyFloat>().ok().map(PyFloatMethods::value))
}
