//! Which disk it is: one animal, or several in one.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use crate::device::{BlockDevice, Shape};
use crate::disk::Disk;
use crate::pace::Operation;
use crate::served::Request;

mod table;
pub(crate) mod traits;
mod values;

pub use table::{Parameter, SPECIES, Species, TIMES};
use table::{Told, give};
use traits::Traits;

/// A description of a disk, from which any number can be made; all of them behave in the same way.
#[derive(Clone, Debug)]
pub struct Animal {
    species: Vec<&'static Species>,
    /// Species, name and value.
    told: Vec<(usize, String, String)>,
    seed: u64,
}

impl Animal {
    /// Reads a description. `names` is a name of [`SPECIES`], or several with `+` between them;
    /// `parameters` are written `name=value`, or `animal.name=value` if several have the name.
    ///
    /// # Errors
    ///
    /// A line that names the part that is not understood.
    ///
    /// # Examples
    ///
    /// ```
    /// use vellum_zoo::Animal;
    ///
    /// let animal = Animal::new("slow-flush+jitter", &["flush=5ms", "median=200us"], 1)?;
    /// assert_eq!(animal.to_string(), "slow-flush+jitter flush=5ms median=200us");
    /// # Ok::<(), String>(())
    /// ```
    pub fn new(names: &str, parameters: &[&str], seed: u64) -> Result<Animal, String> {
        let find = |name| SPECIES.iter().find(|species| species.name == name);
        let unknown = |name: &str| {
            let all: Vec<&str> = SPECIES.iter().map(|species| species.name).collect();
            format!("\"{name}\" is no animal; there are {}", all.join(", "))
        };
        let species = names.split('+').map(|name| find(name).ok_or_else(|| unknown(name)));
        let mut animal =
            Animal { species: species.collect::<Result<_, _>>()?, told: Vec::new(), seed };
        for parameter in parameters {
            animal.tell(parameter)?;
        }
        animal.traits()?;
        Ok(animal)
    }

    fn tell(&mut self, parameter: &str) -> Result<(), String> {
        let (name, value) = parameter
            .split_once('=')
            .ok_or_else(|| format!("\"{parameter}\" is not written name=value"))?;
        let (whose, name) = match name.rsplit_once('.') {
            Some((whose, name)) => (Some(whose), name),
            None => (None, name),
        };
        let has = |species: &Species| {
            species.parameters.iter().chain(TIMES).any(|known| known.name == name)
                && whose.is_none_or(|whose| whose == species.name)
        };
        let found: Vec<usize> =
            (0..self.species.len()).filter(|index| has(self.species[*index])).collect();
        match found[..] {
            [index] => self.told.push((index, name.to_owned(), value.to_owned())),
            [] => {
                let all = self.species.iter().flat_map(|species| species.parameters);
                let mut all: Vec<&str> = all.map(|known| known.name).collect();
                if !all.is_empty() {
                    all.extend(TIMES.iter().map(|known| known.name));
                }
                let all = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
                return Err(format!("\"{name}\" cannot be told; what can be is {all}"));
            }
            _ => {
                let first = self.species[found[0]].name;
                return Err(format!("several have {name}: write {first}.{name}={value}"));
            }
        }
        Ok(())
    }

    fn traits(&self) -> Result<Traits, String> {
        let mut traits = Traits::default();
        for (index, species) in self.species.iter().enumerate() {
            let own = self.told.iter().filter(|(whose, ..)| *whose == index);
            let said: Vec<_> = own.map(|(_, name, value)| (name.clone(), value.clone())).collect();
            let seed = self.seed.wrapping_add(index as u64);
            give(&Told { species, said: &said, seed }, &mut traits)?;
        }
        Ok(traits)
    }

    /// Its times by a clock of the caller's.
    ///
    /// # Errors
    ///
    /// None in practice: the values were read before.
    pub fn times(&self) -> Result<Times, String> {
        Ok(Times { traits: self.traits()? })
    }

    /// A disk with this medium, which has its length; a multiple of 4096 bytes.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    pub fn disk(&self, medium: File) -> anyhow::Result<Disk> {
        let traits = self.traits().map_err(anyhow::Error::msg)?;
        Disk::new(medium, traits, self.seed)
    }

    /// A block device with such a disk; needs a directory of its own.
    ///
    /// # Errors
    ///
    /// The machine lacks something ([`Missing`](crate::Missing)), or it failed.
    pub fn device(&self, dir: &Path, medium: File) -> anyhow::Result<BlockDevice<Disk>> {
        let shape = Shape { is_overlapping: true, ..Shape::default() };
        let mut device = BlockDevice::new(dir, self.disk(medium)?, shape)?;
        // The kernel has flushed once already, to attach it.
        device.disk().begin_anew(self.traits().map_err(anyhow::Error::msg)?);
        let can_fail = device.disk().can_fail();
        if can_fail {
            device.ask_in_whole()?;
        }
        Ok(device)
    }
}

/// When requests would be done by a disk of an animal, without a device and without waiting.
#[derive(Debug)]
pub struct Times {
    traits: Traits,
}

impl Times {
    /// When a request is done that comes so long after the disk began. Requests come in the order
    /// of time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use vellum_zoo::{Animal, Request};
    ///
    /// let animal = Animal::new("slow-flush", &["flush=5ms", "begins=1s"], 1)?;
    /// let mut times = animal.times()?;
    /// let mut done = |at| times.done(Request::Flush, Duration::from_millis(at)).as_millis();
    /// assert_eq!((done(1), done(1000)), (1, 1005));
    /// # Ok::<(), String>(())
    /// ```
    pub fn done(&mut self, request: Request<'_>, at: Duration) -> Duration {
        self.traits.done(&Operation::of(request), at)
    }
}

impl fmt::Display for Animal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.species.iter().map(|species| species.name).collect();
        f.write_str(&names.join("+"))?;
        self.told.iter().try_for_each(|(_, name, value)| write!(f, " {name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_animal_understands_its_own_defaults() {
        for species in SPECIES {
            Animal::new(species.name, &[], 1).unwrap();
            for parameter in species.parameters {
                let said = format!("{}={}", parameter.name, parameter.default);
                Animal::new(species.name, &[&said], 1).unwrap();
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let refused = |names, parameters: &[&str]| Animal::new(names, parameters, 1).unwrap_err();
        assert!(refused("tame", &[]).contains("there are sound, slow-flush"));
        assert!(refused("stalls", &["fro=1s"]).contains("what can be is every, for, begins"));
        assert!(refused("sound", &["for=1s"]).contains("nothing"));
        assert!(refused("lying", &["begins=1s"]).contains("takes no time"));
        assert!(refused("stalls", &["for"]).contains("name=value"));
        assert!(refused("stalls", &["for=1h"]).contains("for: \"1h\" is no time"));
        let twice = refused("slow-flush+no-fua", &["flush=1ms"]);
        assert_eq!(twice, "several have flush: write slow-flush.flush=1ms");
        Animal::new("slow-flush+no-fua", &["no-fua.flush=1ms"], 1).unwrap();
        assert!(refused("lying+forgets", &[]).contains("one cache"));
    }
}
