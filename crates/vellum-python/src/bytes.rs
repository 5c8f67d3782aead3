//! Records as Python hands them in: anything that has the buffer protocol.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// The bytes of a record: the caller's own `bytes`, or a copy of what can change under us.
pub(crate) struct Payload<'py>(Bound<'py, PyBytes>);

impl Payload<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'py> FromPyObject<'_, 'py> for Payload<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Payload<'py>> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Payload(bytes.to_owned()));
        }
        let view = PyMemoryView::from(&object)?;
        let copy = view.call_method0(pyo3::intern!(object.py(), "tobytes"))?;
        Ok(Payload(copy.cast_into()?))
    }
}
