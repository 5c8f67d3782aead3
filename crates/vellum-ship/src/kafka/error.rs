//! Why sending ends.

use vellum::Lsn;

/// Why sending ends.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The URL or an option cannot be used.
    #[error("{0}")]
    Option(String),
    /// The topic or its partition is not there.
    #[error("{0}")]
    NoTopic(String),
    /// Kafka has a position of this log, and this directory has never sent to that topic.
    #[error(
        "Kafka has a position of this log, and this copy of it never sent to the topic: stop the \
         other shipper and use --take-over, or choose another topic"
    )]
    NotOwner,
    /// Kafka has no position, although records were sent.
    #[error(
        "Kafka does not have the position of this log any more: it was too old, or the topic was \
         deleted; --take-over continues at position {0}, and may send the last records twice"
    )]
    Gone(Lsn),
    /// The log is not what was sent.
    #[error(
        "the log is not what was sent to the topic ({0}); --take-over continues with what the log \
         has now, and takes nothing back"
    )]
    Diverged(String),
    /// Records were removed before they were sent.
    #[error(
        "the log begins at {begin}, and records from {from} on were not sent yet: --take-over or \
         --max-unshipped continue behind them"
    )]
    Overrun {
        /// The first position that is lost.
        from: Lsn,
        /// The oldest record that is left.
        begin: Lsn,
    },
    /// Another one sends this log to this topic.
    #[error("another shipper sends this log to this topic now")]
    Fenced,
    /// A record that the topic does not take.
    #[error(
        "a record{0} is longer than a message may be: raise max.message.bytes of the topic, and \
         --kafka-config message.max.bytes"
    )]
    TooLong(String),
    /// The broker cannot be reached, or refuses.
    #[error("Kafka: {0}")]
    Broker(String),
    /// Records were removed, or taken back, where the next one was to be read.
    #[error(transparent)]
    Moved(vellum::Error),
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] vellum::Error),
}

impl SendError {
    /// Whether a later attempt may succeed. Each begins with the position that Kafka has.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            SendError::Broker(_) | SendError::Moved(_) => true,
            SendError::Log(error) => error.kind() == vellum::ErrorKind::Trimmed,
            _ => false,
        }
    }
}
