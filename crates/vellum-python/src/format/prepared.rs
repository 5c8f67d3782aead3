//! A formatter taken apart, and how to tell that it still is the same.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use super::clock::Clock;
use super::record::Fields;
use super::stdlib::Stdlib;
use super::template::{Piece, parse};

/// The known parts of a formatter.
pub(crate) struct Prepared {
    formatter: Py<PyAny>,
    class: Py<PyType>,
    /// Its own attributes and those of its style, and how many there are: a method put there hides
    /// its class's.
    own: [(Py<PyDict>, usize); 2],
    /// Its attributes when it was taken apart: if they have changed, it is taken apart anew.
    parts: Vec<Part>,
    /// How it formats; `None` where only Python knows.
    plan: Option<Plan>,
}

struct Plan {
    pieces: Vec<Piece>,
    clock: Option<Clock>,
}

/// Something that decides how a formatter formats, compared by identity for every record.
struct Part {
    name: Py<PyString>,
    place: Place,
    found: Option<Py<PyAny>>,
}

enum Place {
    /// A dictionary of attributes, which is looked into directly.
    Own(Py<PyDict>),
    Class(Py<PyType>),
}

impl Part {
    /// The attribute `name` of an object with the attributes `own`, or of its class.
    fn of(name: &str, own: &Bound<'_, PyDict>, class: &Bound<'_, PyType>) -> PyResult<Part> {
        let py = own.py();
        let place = match own.contains(name)? {
            true => Place::Own(own.clone().unbind()),
            false => Place::Class(class.clone().unbind()),
        };
        let mut part = Part { name: PyString::intern(py, name).unbind(), place, found: None };
        part.found = part.now(py)?.map(Bound::unbind);
        Ok(part)
    }

    fn now<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let name = self.name.bind(py);
        match &self.place {
            Place::Own(own) => own.bind(py).get_item(name),
            Place::Class(class) => class.bind(py).getattr_opt(name),
        }
    }

    fn is_unchanged(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(match (self.now(py)?, &self.found) {
            (Some(now), Some(found)) => now.is(found),
            (now, found) => now.is_none() && found.is_none(),
        })
    }
}

impl Prepared {
    pub(crate) fn new(stdlib: &Stdlib, formatter: &Bound<'_, PyAny>) -> PyResult<Prepared> {
        let style = formatter.getattr("_style")?;
        let (class, style_class) = (formatter.get_type(), style.get_type());
        let (own, style_own) = (dict(formatter)?, dict(&style)?);
        let plan = Plan::of(stdlib, formatter)?;
        let has_clock = plan.as_ref().is_some_and(|plan| plan.clock.is_some());
        let mut parts = Vec::new();
        for name in ["format", "_style"] {
            parts.push(Part::of(name, &own, &class)?);
        }
        for name in ["_fmt", "_defaults"] {
            parts.push(Part::of(name, &style_own, &style_class)?);
        }
        for name in TIME_PARTS.iter().filter(|_| has_clock) {
            parts.push(Part::of(name, &own, &class)?);
        }
        let own = [own, style_own].map(|own| {
            let len = own.len();
            (own.unbind(), len)
        });
        let (formatter, class) = (formatter.clone().unbind(), class.unbind());
        Ok(Prepared { formatter, class, own, parts, plan })
    }

    /// Whether this is what `formatter` is made of now.
    pub(crate) fn is_for(&self, formatter: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = formatter.py();
        if !self.formatter.is(formatter)
            || formatter.get_type_ptr() != self.class.as_ptr().cast()
            || self.own.iter().any(|(own, len)| own.bind(py).len() != *len)
        {
            return Ok(false);
        }
        for part in &self.parts {
            if !part.is_unchanged(py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes `record` as the formatter formats it; `false` where Python has to.
    pub(crate) fn write(
        &self,
        stdlib: &Stdlib,
        record: &Fields<'_, '_>,
        line: &mut Vec<u8>,
    ) -> PyResult<bool> {
        let Some(plan) = &self.plan else { return Ok(false) };
        let py = record.py();
        if record.has_more()? {
            return Ok(false);
        }
        // As the standard library does: others may look at them.
        let Some(message) = record.message(line)? else { return Ok(false) };
        record.set(intern!(py, "message"), &message)?;
        let mut time = None;
        if let Some(clock) = &plan.clock {
            let Some(shown) = clock.show(stdlib, record)? else { return Ok(false) };
            record.set(intern!(py, "asctime"), &shown)?;
            time = Some(shown.into_any());
        }
        for piece in &plan.pieces {
            let is_known = match piece {
                Piece::Text(text) => {
                    line.extend_from_slice(text.as_bytes());
                    true
                }
                Piece::Message(spec) => spec.write(&message, line)?,
                Piece::Time(spec) => spec.write_if_any(time.as_ref(), line)?,
                Piece::Field { name, spec } => {
                    spec.write_if_any(record.get(name.bind(py))?.as_ref(), line)?
                }
            };
            if !is_known {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The attributes that decide how a formatter shows the time.
const TIME_PARTS: [&str; 5] =
    ["datefmt", "formatTime", "converter", "default_time_format", "default_msec_format"];

fn dict<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    Ok(object.getattr("__dict__")?.cast_into()?)
}

impl Plan {
    fn of(stdlib: &Stdlib, formatter: &Bound<'_, PyAny>) -> PyResult<Option<Plan>> {
        let style = formatter.getattr("_style")?;
        if !stdlib.is_plain_formatter(formatter, &style)?
            || style.getattr("_defaults")?.is_truthy()?
        {
            return Ok(None);
        }
        let Ok(format) = style.getattr("_fmt")?.cast_into::<PyString>() else { return Ok(None) };
        let format = format.to_str()?;
        let Some(pieces) = parse(formatter.py(), format) else { return Ok(None) };
        let clock = match format.contains("%(asctime)") {
            true => match Clock::of(stdlib, formatter)? {
                Some(clock) => Some(clock),
                None => return Ok(None),
            },
            false => None,
        };
        Ok(Some(Plan { pieces, clock }))
    }
}
