//! The objects that have to be as the standard library made them.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// The objects of `logging` and `time` that formatting relies on.
pub(crate) struct Stdlib {
    log_record: Py<PyType>,
    formatter: Py<PyType>,
    percent_style: Py<PyType>,
    get_message: Py<PyAny>,
    pub(crate) default_formatter: Py<PyAny>,
    pub(crate) localtime: Py<PyAny>,
    pub(crate) gmtime: Py<PyAny>,
    pub(crate) strftime: Py<PyAny>,
}

/// The methods of `Formatter` that are imitated.
const METHODS: [&str; 4] = ["format", "formatTime", "formatMessage", "usesTime"];

impl Stdlib {
    pub(crate) fn get(py: Python<'_>) -> PyResult<&Stdlib> {
        static STDLIB: PyOnceLock<Stdlib> = PyOnceLock::new();
        STDLIB.get_or_try_init(py, || Stdlib::import(py))
    }

    fn import(py: Python<'_>) -> PyResult<Stdlib> {
        let (logging, time) = (py.import("logging")?, py.import("time")?);
        let class = |name: &str| -> PyResult<Py<PyType>> {
            Ok(logging.getattr(name)?.cast_into::<PyType>()?.unbind())
        };
        let get_message = logging.getattr("LogRecord")?.getattr("getMessage")?.unbind();
        Ok(Stdlib {
            log_record: class("LogRecord")?,
            formatter: class("Formatter")?,
            percent_style: class("PercentStyle")?,
            get_message,
            default_formatter: logging.getattr("_defaultFormatter")?.unbind(),
            localtime: time.getattr("localtime")?.unbind(),
            gmtime: time.getattr("gmtime")?.unbind(),
            strftime: time.getattr("strftime")?.unbind(),
        })
    }

    /// Whether `record` is a `LogRecord` of no other class, with its own `getMessage`.
    pub(crate) fn is_plain_record(&self, record: &Bound<'_, PyAny>) -> PyResult<bool> {
        let class = record.get_type();
        let get_message = class.getattr(intern!(record.py(), "getMessage"))?;
        Ok(class.is(&self.log_record) && get_message.is(&self.get_message))
    }

    /// Whether `formatter` and its style are of the standard library, with methods of its own.
    pub(crate) fn is_plain_formatter(
        &self,
        formatter: &Bound<'_, PyAny>,
        style: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let class = formatter.get_type();
        if !class.is(&self.formatter) || !style.get_type().is(&self.percent_style) {
            return Ok(false);
        }
        let own = formatter.getattr("__dict__")?;
        for name in METHODS {
            if own.contains(name)? || !is_method_of_logging(&class, name, "Formatter")? {
                return Ok(false);
            }
        }
        Ok(!style.getattr("__dict__")?.contains("format")?
            && is_method_of_logging(&style.get_type(), "format", "PercentStyle")?)
    }
}

/// Whether a method is the one that `logging` defines, and not a replacement.
fn is_method_of_logging(class: &Bound<'_, PyType>, name: &str, owner: &str) -> PyResult<bool> {
    let method = class.getattr(name)?;
    let text = |attribute: &str| -> PyResult<String> {
        Ok(method.getattr(attribute)?.cast_into::<PyString>()?.to_str()?.to_owned())
    };
    let qualified = text("__qualname__")?;
    let expected = [format!("{owner}.{name}"), format!("PercentStyle.{name}")];
    Ok(text("__module__")? == "logging" && expected.contains(&qualified))
}
