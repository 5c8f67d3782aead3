//! A log record as formatting sees it.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::message;

/// The attributes of a record.
///
/// They are asked for one by one: to ask for `__dict__` has Python make a dictionary for the
/// record, which costs more than all that is looked up in it here.
pub(crate) struct Fields<'record, 'py>(pub(crate) &'record Bound<'py, PyAny>);

impl<'py> Fields<'_, 'py> {
    pub(crate) fn py(&self) -> Python<'py> {
        self.0.py()
    }

    /// An attribute; `None` where the record has none of that name.
    pub(crate) fn get(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.getattr_opt(name)
    }

    pub(crate) fn set(
        &self,
        name: &Bound<'py, PyString>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.0.setattr(name, value)
    }

    /// Whether a traceback or a stack follows the line.
    pub(crate) fn has_more(&self) -> PyResult<bool> {
        let py = self.py();
        for name in [intern!(py, "exc_info"), intern!(py, "exc_text"), intern!(py, "stack_info")] {
            if self.get(name)?.is_none_or(|more| !more.is_none()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What `LogRecord.getMessage` answers; `None` for a record that lacks what it is made of.
    /// `scratch` is empty, and is again afterwards.
    pub(crate) fn message(&self, scratch: &mut Vec<u8>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = self.py();
        let (Some(msg), Some(args)) =
            (self.get(intern!(py, "msg"))?, self.get(intern!(py, "args"))?)
        else {
            return Ok(None);
        };
        let text = match msg.cast_into_exact::<PyString>() {
            Ok(text) => text,
            Err(other) => other.into_inner().str()?,
        };
        if let Ok(args) = args.cast_exact::<PyTuple>()
            && let Some(message) = message::percent(&text, args, scratch)
        {
            return Ok(Some(message.into_any()));
        }
        if args.is_truthy()? { text.rem(args).map(Some) } else { Ok(Some(text.into_any())) }
    }
}
