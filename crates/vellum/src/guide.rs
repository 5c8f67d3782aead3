//! A write-ahead log step by step, and the rest of the crate behind it.
//!
//! # Pages of the repository
//!
//! Not here, but in the directory `docs` of the repository: `guarantees.md` says what survives
//! which fault, and how that is tested; `format.md` has the bytes of the files, `protocol.md` the
//! words that processes share, `troubleshooting.md` each error with what to do, `operations.md`
//! what runs beside a log, `decisions/` why it is so. `c.md` and `python.md` are guides like this
//! one.
//!
//! [C]: #pages-of-the-repository
//! [Python]: #pages-of-the-repository
//! [Troubleshooting]: crate::ErrorKind
//! [durable reader]: crate::Reader::durable
//! [decision 7]: #pages-of-the-repository
//! [decision 18]: crate::PollableReader
//! [decision 20]: #pages-of-the-repository
//! [decision 21]: crate::Log::reader_at_time
//! [ships]: crate::ship
//! [named cursor]: crate::Cursor
//! [Log files]: crate::Options::text
//!
#![doc = include_str!("../guide.md")]
