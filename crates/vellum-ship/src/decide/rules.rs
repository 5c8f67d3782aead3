//! Rules that a test can break, to see that the model finds out.

/// A rule broken. Each is a design that looks right.
#[cfg_attr(not(test), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Objects are put whether or not one exists.
    UnconditionalPut,
    /// A chunk is acknowledged before the reply.
    AckBeforeReply,
    /// Bytes are shipped that are not durable.
    ShipBeyondDurable,
    /// Seals are deleted with the rest.
    DeleteSeals,
    /// The marker comes after the first deletion.
    MarkerAfterDelete,
    /// No look at the marker after a chunk was created.
    NoCheckAfterCreate,
    /// No look at the marker after a chunk was adopted.
    NoCheckAfterAdopt,
    /// No look at the marker after a seal was created.
    NoCheckAfterClaim,
    /// The nonce decides whose an object is, and not its content.
    NonceDecides,
    /// A reader takes an absent object for the end.
    ReaderTrustsAbsence,
    /// A reader takes chunks before merged objects.
    ChunksFirst,
    /// Names without the chain.
    KeyWithoutChain,
    /// A slot is judged although an earlier one is not acknowledged.
    JudgeOutOfOrder,
    /// A restart does not look for merged objects.
    NoResync,
    /// The retained range begins anywhere.
    RetainAnywhere,
    /// Chunks are not recorded before they are sent.
    NoJournal,
    /// An object that cannot be compared is taken for one's own.
    AdoptUnseen,
    /// The local log is removed before the position is stored.
    HoldBeforeSave,
    /// A restart takes any chunk behind its position for another one's.
    StrayIsEvidence,
    /// One that takes over begins where the old generation ends, whatever has landed there.
    ForkAnywhere,
    /// One that takes over ends the newest generation, whichever it had compared its log with.
    TakeAnyGeneration,
    /// An owner begins its next generation where the old one ends, whatever has landed there.
    RotateAnywhere,
    /// A merged object begins at any chunk.
    MergeAnywhere,
}

/// Whether a test has broken this rule in its thread.
#[cfg(not(test))]
pub(crate) const fn breaks(_: Broken) -> bool {
    false
}

#[cfg(test)]
pub(crate) use test::{breaking, breaks};

#[cfg(test)]
mod test {
    use std::cell::Cell;

    use super::Broken;

    thread_local! {
        static BROKEN: Cell<Option<Broken>> = const { Cell::new(None) };
    }

    pub(crate) fn breaks(rule: Broken) -> bool {
        BROKEN.get() == Some(rule)
    }

    /// Runs with a rule broken.
    pub(crate) fn breaking<T>(rule: Option<Broken>, run: impl FnOnce() -> T) -> T {
        BROKEN.set(rule);
        let result = run();
        BROKEN.set(None);
        result
    }
}
