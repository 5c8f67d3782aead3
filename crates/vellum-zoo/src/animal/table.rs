//! The animals: a description of each, its parameters, and the traits that it gives to a disk.

use std::time::Duration;

use super::traits::{Failing, FailingKind, Traits};
use super::values::{is, number, share, size, time};
use crate::pace::{Bucket, Fixed, Jitter, Neighbour, Pace, Partial, Stalls, Unit, Window};
use crate::store::{BLOCK_LEN, CacheRule};

/// One animal.
#[derive(Debug)]
pub struct Species {
    /// Its name.
    pub name: &'static str,
    /// Its effect, in a line.
    pub what: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    pub(super) give: fn(&Told<'_>, &mut Traits) -> Result<(), String>,
}

/// Something that an animal can be told.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its value, if the user names none.
    pub default: &'static str,
    /// Its meaning, in a line.
    pub what: &'static str,
}

const fn parameter(name: &'static str, default: &'static str, what: &'static str) -> Parameter {
    Parameter { name, default, what }
}

/// The parameters of every animal that takes time.
pub const TIMES: &[Parameter] = &[
    parameter("begins", "0", "when it begins to take time, from when the disk began"),
    parameter("ends", "0", "when that ends; 0: never"),
    parameter("each", "0", "only in the last part of each stretch of this length; 0: always"),
    parameter("lasts", "1s", "length of that part"),
];

/// Parameters of disks with a cache.
const CACHE: Parameter =
    parameter("cache", "64M", "bytes of the cache; the oldest go to the medium");
const TORN: Parameter = parameter("torn", "no", "whether the last block that survives is torn");

const fn kept(default: &'static str) -> Parameter {
    parameter("kept", default, "share of the cache that survives a cut")
}

/// The values that the user gave to an animal.
pub(super) struct Told<'a> {
    pub(super) species: &'static Species,
    /// Names and values.
    pub(super) said: &'a [(String, String)],
    pub(super) seed: u64,
}

impl Told<'_> {
    /// One parameter.
    fn get<T>(&self, name: &str, read: fn(&str) -> Result<T, String>) -> Result<T, String> {
        let said = self.said.iter().rev().find(|(said, _)| said == name);
        let mut known = self.species.parameters.iter().chain(TIMES);
        let known = known.find(|parameter| parameter.name == name);
        let text = said.map(|(_, value)| value.as_str()).or(known.map(|known| known.default));
        read(text.unwrap_or_default()).map_err(|error| format!("{name}: {error}"))
    }
}

/// All of them.
pub const SPECIES: &[Species] = &[
    Species {
        name: "sound",
        what: "fast, and keeps everything that was written",
        parameters: &[],
        give: |_, _| Ok(()),
    },
    Species {
        name: "slow-flush",
        what: "takes its time for each flush",
        parameters: &[
            parameter("flush", "10ms", "time of a flush"),
            parameter("write", "0", "time of a write"),
            parameter("read", "0", "time of a read"),
            parameter("first", "0", "only for so long, from when the disk began; 0: always"),
        ],
        give: |told, traits| {
            let flush = told.get("flush", time)?;
            let (write, read) = (told.get("write", time)?, told.get("read", time)?);
            let until = Some(told.get("first", time)?).filter(|first| !first.is_zero());
            traits.paces.push(Box::new(Fixed { read, write, flush, until, ..Fixed::default() }));
            Ok(())
        },
    },
    Species {
        name: "no-fua",
        what: "has no durable writes: each is a write and a flush (so is every loop device)",
        parameters: &[
            parameter("flush", "2ms", "time of a flush"),
            parameter("write", "100us", "time of a write"),
        ],
        give: |told, traits| {
            let (flush, write) = (told.get("flush", time)?, told.get("write", time)?);
            traits.paces.push(Box::new(Fixed { flush, write, ..Fixed::default() }));
            Ok(())
        },
    },
    Species {
        name: "lying",
        what: "answers flushes and writes nothing: a power cut takes what is in its cache",
        parameters: &[CACHE, kept("0"), TORN],
        give: |told, traits| traits.cache(cache(told, true, 0)?),
    },
    Species {
        name: "forgets",
        what: "has a volatile cache, and is honest: a power cut takes what was not flushed",
        parameters: &[CACHE, kept("0.5"), TORN],
        give: |told, traits| traits.cache(cache(told, false, 0)?),
    },
    Species {
        name: "forgets-flushed",
        what: "flushes, and a power cut still takes the blocks that were flushed last",
        parameters: &[
            parameter("lost", "8", "blocks of 4096 bytes that go"),
            CACHE,
            kept("0.5"),
            TORN,
        ],
        give: |told, traits| {
            let lost = told.get("lost", size)?;
            traits.cache(cache(told, false, usize::try_from(lost).unwrap_or(usize::MAX))?)
        },
    },
    Species {
        name: "budget",
        what: "is fast until a budget ends, then slow; the budget comes back",
        parameters: &[
            parameter("operations", "3000", "operations of the budget"),
            parameter("operation-rate", "100", "operations that come back in a second; 0: all"),
            parameter("bytes", "64M", "bytes of the budget"),
            parameter("byte-rate", "0", "bytes that come back in a second; 0: all"),
        ],
        give: limited,
    },
    Species {
        name: "throttled",
        what: "does so many operations and bytes in a second, and no more",
        parameters: &[
            parameter("operations", "10", "operations that may be done at once"),
            parameter("operation-rate", "500", "operations in a second; 0: no limit"),
            parameter("bytes", "256K", "bytes that may be written at once"),
            parameter("byte-rate", "16M", "bytes in a second; 0: no limit"),
        ],
        give: limited,
    },
    Species {
        name: "stalls",
        what: "answers nothing for a while, at regular times",
        parameters: &[
            parameter("every", "5s", "from one pause to the next"),
            parameter("for", "500ms", "length of a pause"),
        ],
        give: |told, traits| {
            let stalls = Stalls::new(told.get("every", time)?, told.get("for", time)?);
            traits.pace(stalls);
            Ok(())
        },
    },
    Species {
        name: "bursts",
        what: "is shared with one that comes and goes: for a while each request takes longer",
        parameters: &[
            parameter("every", "10s", "from one burst to the next"),
            parameter("for", "2s", "length of a burst"),
            parameter("cost", "25ms", "what a request takes meanwhile"),
        ],
        give: |told, traits| {
            let cost = told.get("cost", time)?;
            let pace = Fixed { read: cost, write: cost, flush: cost, ..Fixed::default() };
            let stretch = (told.get("every", time)?, told.get("for", time)?);
            traits.paces.push(Box::new(Window {
                pace: Box::new(pace),
                begins: Duration::ZERO,
                ends: None,
                stretch: Some(stretch).filter(|(every, _)| !every.is_zero()),
            }));
            Ok(())
        },
    },
    Species {
        name: "slow-journal",
        what: "takes its time for each write of the journal of ext4",
        parameters: &[parameter("cost", "15ms", "time of such a write")],
        give: |told, traits| {
            let journal = told.get("cost", time)?;
            traits.paces.push(Box::new(Fixed { journal, ..Fixed::default() }));
            Ok(())
        },
    },
    Species {
        name: "512e",
        what: "has physical sectors of 4096 bytes: a write of a part of one costs more",
        parameters: &[
            parameter("cost", "8ms", "what such a write costs"),
            parameter("sector", "4096", "bytes of a physical sector"),
        ],
        give: |told, traits| {
            let sector = told.get("sector", size)?.max(512);
            traits.paces.push(Box::new(Partial { sector, cost: told.get("cost", time)? }));
            Ok(())
        },
    },
    Species {
        name: "neighbour",
        what: "is shared: somebody else's requests go through the same queue",
        parameters: &[
            parameter("bandwidth", "100M", "bytes in a second, for both"),
            parameter("share", "0.7", "what the neighbour asks for"),
            parameter("bytes", "256K", "of one request of the neighbour's"),
        ],
        give: |told, traits| {
            let (bandwidth, bytes) = (told.get("bandwidth", size)?, told.get("bytes", size)?);
            let share = told.get("share", share)?;
            traits.pace(Neighbour::new(bandwidth, share, bytes, told.seed));
            Ok(())
        },
    },
    Species {
        name: "jitter",
        what: "takes now this long and now that: log-normal times",
        parameters: &[
            parameter("median", "1ms", "half of the requests take longer"),
            parameter("sigma", "1", "of the logarithm of the times"),
        ],
        give: |told, traits| {
            let (median, sigma) = (told.get("median", time)?, told.get("sigma", number)?);
            traits.paces.push(Box::new(Jitter::new(median, sigma.min(10.0), told.seed)));
            Ok(())
        },
    },
    Species {
        name: "fails",
        what: "answers with an error, from a request on or in a range",
        parameters: &[
            parameter("what", "write", "write, flush, read or any"),
            parameter("at", "1", "the first of these requests that fails, from 1"),
            parameter("count", "0", "so many fail; 0: all from then on"),
            parameter("from", "0", "only requests that touch a byte from here"),
            parameter("to", "0", "and before here; 0: the end"),
        ],
        give: |told, traits| {
            let what = told.get("what", FailingKind::read)?;
            let (first, count) = (told.get("at", size)?.max(1), told.get("count", size)?);
            let (from, to) = (told.get("from", size)?, told.get("to", size)?);
            let to = if to == 0 { u64::MAX } else { to };
            traits.failing.push(Failing::new(what, first, count, from..to));
            Ok(())
        },
    },
    Species {
        name: "drops",
        what: "answers some writes, and they go nowhere",
        parameters: &[parameter("share", "0.002", "of all writes")],
        give: |told, traits| {
            traits.dropped = told.get("share", share)?;
            Ok(())
        },
    },
];

/// Has what the animal adds to a disk hold for that part of the time for which it was told.
pub(super) fn give(told: &Told<'_>, traits: &mut Traits) -> Result<(), String> {
    let before = traits.paces.len();
    (told.species.give)(told, traits)?;
    let [begins, ends, each, lasts] =
        ["begins", "ends", "each", "lasts"].map(|name| told.get(name, time));
    let (begins, ends, each, lasts) = (begins?, ends?, each?, lasts?);
    if begins.is_zero() && ends.is_zero() && each.is_zero() {
        return Ok(());
    }
    if traits.paces.len() == before {
        return Err(format!(
            "{} takes no time, so that it has no begin and no end",
            told.species.name
        ));
    }
    let paces = traits.paces.split_off(before).into_iter();
    traits.paces.extend(paces.map(|pace| -> Box<dyn Pace> {
        let ends = Some(ends).filter(|ends| !ends.is_zero());
        let stretch = Some((each, lasts)).filter(|(each, _)| !each.is_zero());
        Box::new(Window { pace, begins, ends, stretch })
    }));
    Ok(())
}

fn cache(told: &Told<'_>, lies: bool, flushed_lost: usize) -> Result<CacheRule, String> {
    let blocks = told.get("cache", size)? / BLOCK_LEN as u64;
    Ok(CacheRule {
        lies,
        blocks_max: usize::try_from(blocks).unwrap_or(usize::MAX),
        kept: told.get("kept", share)?,
        is_torn: told.get("torn", is)?,
        flushed_lost,
    })
}

fn limited(told: &Told<'_>, traits: &mut Traits) -> Result<(), String> {
    for (unit, burst, rate) in
        [(Unit::Operations, "operations", "operation-rate"), (Unit::Bytes, "bytes", "byte-rate")]
    {
        traits.pace(Bucket::new(unit, told.get(burst, size)?, told.get(rate, size)?));
    }
    Ok(())
}
