//! Lists whose parts have names: in JSON they are objects, in the order of the list.
//!
//! Form 1 had lists of parts that tell their name. They are read too.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A part, which is written without its name.
pub(super) trait Named: Serialize {
    fn name(&self) -> &str;
    /// Takes the name that it has in an object.
    fn rename(&mut self, name: String);
}

/// For `serialize_with`.
pub(super) fn write<'a, T, P, S>(parts: P, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Named + 'a,
    P: IntoIterator<Item = &'a T>,
    S: Serializer,
{
    serializer.collect_map(parts.into_iter().map(|part| (part.name(), part)))
}

/// For `deserialize_with`.
pub(super) fn read<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Named + Deserialize<'de>,
    D: Deserializer<'de>,
{
    read_as(deserializer, T::rename)
}

/// Reads them as `rename` takes the name of each.
pub(super) fn read_as<'de, T, D>(
    deserializer: D,
    rename: fn(&mut T, String),
) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(Parts { rename })
}

struct Parts<T> {
    rename: fn(&mut T, String),
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or a list of form 1")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        std::iter::from_fn(|| list.next_element().transpose()).collect()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Vec<T>, A::Error> {
        let mut parts = Vec::new();
        while let Some((name, mut part)) = object.next_entry::<String, T>()? {
            (self.rename)(&mut part, name);
            parts.push(part);
        }
        Ok(parts)
    }
}
