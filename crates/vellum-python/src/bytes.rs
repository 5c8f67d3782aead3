//! Records as Python hands them in: anything that has the buffer protocol.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};

/// The bytes of a record: the caller's own `bytes`, or a copy of bytes that can change under us.
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

/// Text or bytes that are written as to a file, and how many characters or bytes those are.
pub(crate) fn written<'py>(text: &Bound<'py, PyAny>) -> PyResult<(Payload<'py>, usize)> {
    let Ok(text) = text.cast::<PyString>() else {
        let payload: Payload<'py> = text.extract()?;
        let count = payload.as_slice().len();
        return Ok((payload, count));
    };
    // No text is lost for a character.
    let encoded = text.call_method1("encode", ("utf-8", "backslashreplace"))?;
    Ok((Payload(encoded.cast_into()?), text.len()?))
}
