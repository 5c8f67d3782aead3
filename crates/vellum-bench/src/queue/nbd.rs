//! Writes to a server of network block devices (NBD) over Unix sockets: QEMU's own way to let
//! another program at an image.
//!
//! ```text
//! greeting   "NBDMAGIC" "IHAVEOPT" flags  →  our flags, "IHAVEOPT", export "", no zeros behind it
//! request    magic, 0, command, slot, offset, length [, the bytes to write]
//! reply      magic, error, slot [, the bytes that were read]
//! ```
//!
//! QEMU takes [`REQUESTS_MAX`] requests of a connection at a time, so a deeper queue has several.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};

use super::{Slots, WriteQueue, Zero};
use crate::error::{Context, Error, Result};

/// `MAX_NBD_REQUESTS` of QEMU.
const REQUESTS_MAX: usize = 16;

const GREETING: &[u8; 16] = b"NBDMAGICIHAVEOPT";
/// `NBD_FLAG_FIXED_NEWSTYLE` and `NBD_FLAG_NO_ZEROES`.
const FLAGS: u16 = 3;
const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
const OPTION_EXPORT_NAME: u32 = 1;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const REQUEST_BYTES: usize = 28;
const REPLY_BYTES: usize = 16;

#[derive(Clone, Copy)]
enum Command {
    Read = 0,
    Write = 1,
    Flush = 3,
}

/// How many connections a queue of so many writes takes.
pub(crate) fn connections(depth: usize) -> usize {
    depth.div_ceil(REQUESTS_MAX)
}

/// Writes over connections to a server, a share of the slots for each.
pub(crate) struct NbdQueue {
    slots: Slots,
    connections: Vec<Connection>,
    in_flight: usize,
    export_bytes: u64,
}

struct Connection {
    stream: UnixStream,
    /// Requests that are to be sent with the next wait.
    outgoing: Vec<u8>,
    /// Part of a reply.
    incoming: Vec<u8>,
    in_flight: usize,
}

impl NbdQueue {
    /// For `depth` writes at a time of at most `bytes` each, over so many
    /// [`connections`](connections()) that were just made.
    pub(crate) fn new(streams: Vec<UnixStream>, depth: usize, bytes: usize) -> Result<NbdQueue> {
        let mut export_bytes = 0;
        let mut connect = |mut stream: UnixStream| {
            export_bytes = greet(&mut stream).context(|| "talk to the NBD server")?;
            let (outgoing, incoming) = (Vec::new(), Vec::new());
            Ok(Connection { stream, outgoing, incoming, in_flight: 0 })
        };
        let connections = streams.into_iter().map(&mut connect).collect::<Result<Vec<_>>>()?;
        assert!(connections.len() * REQUESTS_MAX >= depth, "a slot has a connection");
        Ok(NbdQueue { slots: Slots::new(depth, bytes), connections, in_flight: 0, export_bytes })
    }

    /// How long the exported image is.
    pub(crate) fn export_bytes(&self) -> u64 {
        self.export_bytes
    }

    /// Reads at `offset`; nothing else may be on its way.
    pub(crate) fn read(&mut self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.call(Command::Read, offset, bytes.len())?;
        let stream = &mut self.connections[0].stream;
        stream.read_exact(bytes).context(|| "read from the NBD server")
    }

    /// Has the server make durable what was written.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.call(Command::Flush, 0, 0)
    }

    /// One request, and the head of its reply.
    fn call(&mut self, command: Command, offset: u64, len: usize) -> Result<()> {
        assert_eq!(self.in_flight, 0, "a reply belongs to the only request");
        let stream = &mut self.connections[0].stream;
        let mut head = [0; REPLY_BYTES];
        let request = request(command, 0, offset, len);
        let replied = stream.write_all(&request).and_then(|()| stream.read_exact(&mut head));
        replied.context(|| "talk to the NBD server")?;
        slot_of(&head).map(drop)
    }

    /// Takes the replies that are there on a connection.
    fn receive(&mut self, index: usize, done: &mut Vec<usize>) -> Result<()> {
        let connection = &mut self.connections[index];
        let mut bytes = [0; REPLY_BYTES * REQUESTS_MAX];
        let len = connection.stream.read(&mut bytes).context(|| "hear from the NBD server")?;
        if len == 0 {
            return Err(Error::failed("the NBD server has gone"));
        }
        connection.incoming.extend_from_slice(&bytes[..len]);
        let whole = connection.incoming.len() / REPLY_BYTES * REPLY_BYTES;
        for head in connection.incoming.drain(..whole).as_slice().chunks_exact(REPLY_BYTES) {
            let slot = slot_of(head)?;
            let len = self.slots.len(slot).ok_or_else(not_expected)?;
            self.slots.give_back(slot, len)?;
            done.push(slot);
            connection.in_flight -= 1;
            self.in_flight -= 1;
        }
        Ok(())
    }
}

impl WriteQueue for NbdQueue {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    fn write(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> Result<()> {
        let bytes = self.slots.take(slot, bytes);
        let connection = &mut self.connections[slot / REQUESTS_MAX];
        let request = request(Command::Write, slot, offset, bytes.len());
        connection.outgoing.extend_from_slice(&request);
        connection.outgoing.extend_from_slice(bytes);
        connection.in_flight += 1;
        self.in_flight += 1;
        Ok(())
    }

    fn zero_and_write(&mut self, _: usize, _: Zero, _: Range<usize>, _: u64) -> Result<()> {
        Err(Error::unsupported("QEMU itself makes clusters zero"))
    }

    fn wait(&mut self, done: &mut Vec<usize>) -> Result<()> {
        for connection in &mut self.connections {
            let sent = connection.stream.write_all(&connection.outgoing);
            sent.context(|| "tell the NBD server")?;
            connection.outgoing.clear();
        }
        let busy: Vec<usize> = (0..self.connections.len())
            .filter(|index| self.connections[*index].in_flight > 0)
            .collect();
        for index in readable(&self.connections, &busy)? {
            self.receive(index, done)?;
        }
        Ok(())
    }
}

/// Those of `busy` that have something to be read; waits for the first.
fn readable(connections: &[Connection], busy: &[usize]) -> Result<Vec<usize>> {
    let watched = busy.iter().map(|index| &connections[*index].stream);
    let mut watched: Vec<PollFd<'_>> =
        watched.map(|stream| PollFd::new(stream, PollFlags::IN)).collect();
    if !watched.is_empty() {
        rustix::io::retry_on_intr(|| poll(&mut watched, None))
            .context(|| "wait for the NBD server")?;
    }
    let ready = watched.iter().zip(busy).filter(|(fd, _)| !fd.revents().is_empty());
    Ok(ready.map(|(_, index)| *index).collect())
}

/// Asks for the export without a name; returns its length.
fn greet(stream: &mut UnixStream) -> io::Result<u64> {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    if greeting[..16] != *GREETING || u16::from_be_bytes([greeting[16], greeting[17]]) != FLAGS {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it greets in another way"));
    }
    let mut answer = u32::from(FLAGS).to_be_bytes().to_vec();
    answer.extend_from_slice(OPTION_MAGIC);
    answer.extend_from_slice(&OPTION_EXPORT_NAME.to_be_bytes());
    answer.extend_from_slice(&0_u32.to_be_bytes());
    stream.write_all(&answer)?;
    let (mut len, mut flags) = ([0; 8], [0; 2]);
    stream.read_exact(&mut len)?;
    stream.read_exact(&mut flags)?;
    Ok(u64::from_be_bytes(len))
}

fn request(command: Command, slot: usize, offset: u64, len: usize) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    request[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    request[6..8].copy_from_slice(&(command as u16).to_be_bytes());
    request[8..16].copy_from_slice(&(slot as u64).to_be_bytes());
    request[16..24].copy_from_slice(&offset.to_be_bytes());
    request[24..].copy_from_slice(&(len as u32).to_be_bytes());
    request
}

/// The slot whose request was carried out.
fn slot_of(head: &[u8]) -> Result<usize> {
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if word(0) != REPLY_MAGIC {
        return Err(not_expected());
    }
    match word(4) {
        0 => Ok(word(12) as usize),
        // The protocol has the numbers of Linux.
        error => Err(Error::os("the NBD server", io::Error::from_raw_os_error(error as i32))),
    }
}

fn not_expected() -> Error {
    Error::failed("the NBD server does not reply as expected")
}

#[cfg(test)]
#[path = "nbd_tests.rs"]
mod tests;
