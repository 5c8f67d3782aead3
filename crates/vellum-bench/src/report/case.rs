//! A case: the results of one way, in one setting, in one place. All suites share this form;
//! terminal, JSON, Markdown and HTML show it, and two runs are compared by it.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::by_name::{self, Named};
use crate::stats::Spread;

/// The results of one way, in one setting, in one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The heading of its table. The rows of a table have keys and metrics of the same names, and
    /// are there to be compared with each other.
    pub table: String,
    /// The columns that tell it from the other rows of its table, in the order of the columns:
    /// where it was measured, in what way, with how many threads. Two runs are matched by these.
    #[serde(serialize_with = "by_name::write", deserialize_with = "by_name::read")]
    pub keys: Vec<Key>,
    /// The results, the most telling first. Empty if the row has no numbers.
    #[serde(serialize_with = "by_name::write", deserialize_with = "by_name::read")]
    pub metrics: Vec<Metric>,
    /// The finding by the rule for "faster": the heading of a column, and a word. It tells no rows
    /// apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "by_name::write", deserialize_with = "finding")]
    pub finding: Option<Key>,
    /// How a figure went over time or over something else, for charts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(serialize_with = "by_name::write", deserialize_with = "by_name::read")]
    pub series: Vec<Series>,
    /// Was everything that should be there found after each round?
    pub verified: bool,
    /// Why it can't be done here. Such a row has no numbers.
    pub skipped: Option<String>,
    /// The failure. Such a row has no numbers.
    pub failed: Option<String>,
}

/// One of the names that a row has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "WrittenKey")]
pub struct Key {
    /// Of the column: `filesystem`, `way`, `threads`.
    pub name: String,
    /// As it is to be read: `ext4`, `pwrite`, `4`.
    pub value: String,
}

/// A key in JSON: in form 1 it tells its name.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenKey {
    Named { name: String, value: String },
    Value(String),
}

impl From<WrittenKey> for Key {
    fn from(written: WrittenKey) -> Key {
        match written {
            WrittenKey::Named { name, value } => Key { name, value },
            WrittenKey::Value(value) => Key { name: String::new(), value },
        }
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.value)
    }
}

/// A figure of which there is one for each round, or one for all. In JSON, `min`, `median` and
/// `max` are beside the samples: people read it too.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Metric {
    /// The name of the metric: `write`, `write and sync`, `p99`.
    #[serde(default)]
    pub name: String,
    /// In what: `GB/s`, `ms`, `us`, `x`.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// The figures, in the order of the rounds.
    pub samples: Vec<f64>,
}

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Speeds, ratios of speeds.
    Higher,
    /// Times, costs.
    Lower,
    /// Neither: counts that describe.
    Neither,
}

/// A figure against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its subject: `IOPS over time`, `latency percentiles`.
    #[serde(default, skip_serializing)]
    pub name: String,
    /// The unit of the first number of each point.
    pub x: String,
    /// The unit of the second.
    pub y: String,
    /// In ascending order of x.
    pub points: Vec<[f64; 2]>,
}

impl Case {
    /// The verdict on a case that was run, and well.
    pub(crate) const VERIFIED: &'static str = "yes";

    /// A case without numbers yet.
    pub(crate) fn new(table: impl Into<String>) -> Case {
        Case { table: table.into(), ..Case::default() }
    }

    /// Adds a key.
    pub(crate) fn key(mut self, name: &str, value: impl ToString) -> Case {
        self.keys.push(Key { name: name.into(), value: value.to_string() });
        self
    }

    /// Adds a metric; one without samples, or with one that is no number, is left out.
    pub(crate) fn metric(
        mut self,
        name: &str,
        unit: &str,
        better: Better,
        samples: Vec<f64>,
    ) -> Case {
        if !samples.is_empty() && samples.iter().all(|sample| sample.is_finite()) {
            let (name, unit) = (name.into(), unit.into());
            self.metrics.push(Metric { name, unit, better, samples });
        }
        self
    }

    /// Adds what its figures say.
    pub(crate) fn finding(mut self, name: &str, value: &str) -> Case {
        self.finding = Some(Key { name: name.into(), value: value.into() });
        self
    }

    /// The value of the key of this name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|key| key.name == name).map(|key| key.value.as_str())
    }

    /// The metric of this name.
    pub fn figure(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Its name among the cases of its suite: its way, or all its keys.
    pub fn name(&self) -> String {
        let keys = || self.keys.iter().map(|key| key.value.as_str()).collect::<Vec<&str>>();
        self.way().map_or_else(|| keys().join(" "), String::from)
    }

    /// The contestant: a way, a case, a logger or a handler.
    pub(crate) fn way(&self) -> Option<&str> {
        ["way", "case", "logger", "handler"].into_iter().find_map(|key| self.value(key))
    }

    /// Is it one of Vellum's own ways? In `bench read` those are called after the layout.
    pub(crate) fn is_own(&self) -> bool {
        self.way().is_some_and(|way| {
            let starts = ["framed", "text"].into_iter().any(|layout| way.starts_with(layout));
            starts || way.to_ascii_lowercase().contains("vellum")
        })
    }

    /// The verdict in a word, for a column `verified`.
    pub fn verdict(&self) -> &'static str {
        match self {
            Case { failed: Some(_), .. } => "FAILED",
            Case { skipped: Some(_), .. } => "skipped",
            Case { verified: true, .. } => Case::VERIFIED,
            _ => "no",
        }
    }

    /// Why it has no numbers.
    pub fn reason(&self) -> Option<&str> {
        self.failed.as_deref().or(self.skipped.as_deref())
    }
}

impl Series {
    /// One that shows `y` over `x`, each named by its unit.
    pub(crate) fn new(name: &str, x: &str, y: &str, points: Vec<[f64; 2]>) -> Series {
        Series { name: name.into(), x: x.into(), y: y.into(), points }
    }
}

impl Metric {
    /// Minimum, median and maximum of the rounds.
    pub fn spread(&self) -> Option<Spread> {
        Spread::of(&self.samples)
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spread = self.spread();
        let mut metric = serializer.serialize_struct("Metric", 6)?;
        metric.serialize_field("unit", &self.unit)?;
        metric.serialize_field("better", &self.better)?;
        metric.serialize_field("min", &spread.map(|spread| spread.min))?;
        metric.serialize_field("median", &spread.map(|spread| spread.median))?;
        metric.serialize_field("max", &spread.map(|spread| spread.max))?;
        metric.serialize_field("samples", &self.samples)?;
        metric.end()
    }
}

impl Named for Key {
    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: String) {
        self.name = name;
    }
}

impl Named for Metric {
    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: String) {
        self.name = name;
    }
}

impl Named for Series {
    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: String) {
        self.name = name;
    }
}

/// In form 1 it is a key, and not an object with one.
fn finding<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Key>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Named { name: String, value: String },
        Object(#[serde(deserialize_with = "by_name::read")] Vec<Key>),
    }
    Ok(match Option::deserialize(deserializer)? {
        Some(Written::Named { name, value }) => Some(Key { name, value }),
        Some(Written::Object(keys)) => keys.into_iter().next(),
        None => None,
    })
}
