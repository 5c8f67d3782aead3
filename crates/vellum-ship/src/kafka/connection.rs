//! Clients of a cluster, and its topics.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, DeliveryResult, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use vellum::LogId;

use super::mark::Mark;
use super::{Config, SendError, Target};

/// The longest that one request waits for the cluster.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How many things that librdkafka tells on the side are looked at.
const FAULTS: usize = 16;
/// The memory that librdkafka may keep of messages under way.
const QUEUE_KBYTES: &str = "32768";

/// Messages that librdkafka reports on the side.
#[derive(Default)]
pub(super) struct Context {
    fault: Mutex<Option<String>>,
    undelivered: Mutex<Option<Code>>,
}

impl Context {
    /// Why a message did not arrive, if one did not.
    pub(super) fn undelivered(&self) -> Option<Code> {
        *lock(&self.undelivered)
    }
}

impl ClientContext for Context {
    fn log(&self, _: RDKafkaLogLevel, _: &str, message: &str) {
        *lock(&self.fault) = Some(message.to_string());
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // It follows on another error that tells more.
        if error.rdkafka_error_code() == Some(Code::AllBrokersDown) {
            return;
        }
        *lock(&self.fault) = Some(reason.to_string());
    }
}

impl ConsumerContext for Context {}

impl ProducerContext for Context {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            let code = error.rdkafka_error_code();
            let mut undelivered = lock(&self.undelivered);
            *undelivered = undelivered.or(code);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a position is read that may be changed at this moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As it was committed last: a transaction that is open is not waited for.
    AtOnce,
    /// After transactions that are open have ended.
    Settled,
}

/// The state of a log in a cluster.
pub(super) struct Look {
    pub(super) cluster: String,
    pub(super) mark: Option<Mark>,
    pub(super) group: ConsumerGroupMetadata,
}

/// Where clients connect to, and for which log.
pub(super) struct Connection {
    pub(super) target: Target,
    pub(super) config: Config,
    pub(super) log: LogId,
}

impl Connection {
    /// A producer whose transactions end those of every other one for this log and partition.
    pub(super) fn producer(&self) -> Result<BaseProducer<Context>, SendError> {
        let mut client = self.config.client(&self.target.brokers);
        client
            .set("transactional.id", self.target.transactional_id(self.log))
            .set("queue.buffering.max.kbytes", QUEUE_KBYTES);
        let producer: BaseProducer<Context> = client
            .create_with_context(Context::default())
            .map_err(|error| self.config.refused(&error))?;
        producer.init_transactions(PATIENCE).map_err(|error| self.broken(&producer, &error))?;
        Ok(producer)
    }

    /// Looks for the topic and for the position.
    pub(super) fn look(&self, reading: Reading) -> Result<Look, SendError> {
        let isolation = match reading {
            Reading::AtOnce => "read_uncommitted",
            Reading::Settled => "read_committed",
        };
        let mut client = self.config.client(&self.target.brokers);
        client
            .set("group.id", Target::group(self.log))
            .set("isolation.level", isolation)
            .set("allow.auto.create.topics", "false")
            .set("enable.auto.commit", "false");
        let consumer: BaseConsumer<Context> = client
            .create_with_context(Context::default())
            .map_err(|error| self.config.refused(&error))?;
        self.look_with(&consumer)
    }

    fn look_with(&self, consumer: &BaseConsumer<Context>) -> Result<Look, SendError> {
        let fault = |error| self.unread(consumer, &error);
        self.check_topic(consumer)?;
        let cluster = consumer.client().fetch_cluster_id(PATIENCE);
        let cluster =
            cluster.ok_or_else(|| SendError::Broker("it does not say which it is".into()))?;
        let mut asked = TopicPartitionList::new();
        asked.add_partition(&self.target.topic, self.target.partition);
        let found = consumer.committed_offsets(asked, PATIENCE).map_err(fault)?;
        let mark = match found.elements().first() {
            Some(element) if matches!(element.offset(), Offset::Offset(_)) => {
                Some(element.metadata().parse().map_err(SendError::Diverged)?)
            }
            Some(element) => element.error().map(|()| None).map_err(fault)?,
            None => None,
        };
        let group = consumer.group_metadata();
        let group = group.ok_or_else(|| SendError::Broker("there is no consumer group".into()))?;
        Ok(Look { cluster, mark, group })
    }

    fn check_topic(&self, consumer: &BaseConsumer<Context>) -> Result<(), SendError> {
        let Target { topic, partition, .. } = &self.target;
        let metadata = consumer
            .fetch_metadata(Some(topic), PATIENCE)
            .map_err(|error| self.unread(consumer, &error))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let count = found.map_or(0, |found| found.partitions().len());
        let error = found.and_then(|found| found.error()).map(Code::from);
        match error {
            None if usize::try_from(*partition).is_ok_and(|index| index < count) => Ok(()),
            None => Err(SendError::NoTopic(format!(
                "the topic {topic} has {count} partitions, and no partition {partition}"
            ))),
            Some(Code::UnknownTopicOrPartition) => Err(SendError::NoTopic(format!(
                "Kafka has no topic {topic}: create it with one partition"
            ))),
            Some(code) => Err(SendError::Broker(format!("the topic {topic}: {code}"))),
        }
    }

    /// The error of a producer.
    pub(super) fn broken(&self, producer: &BaseProducer<Context>, error: &KafkaError) -> SendError {
        producer.poll(Duration::ZERO);
        let fatal = producer.client().fatal_error().map(|(code, _)| code);
        let code = fatal.or_else(|| error.rdkafka_error_code());
        match code {
            Some(Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch) => {
                SendError::Fenced
            }
            _ => match producer.context().undelivered() {
                Some(Code::MessageSizeTooLarge) => SendError::TooLong(String::new()),
                Some(code) => SendError::Broker(format!("a message did not arrive: {code}")),
                None => self.fault(producer.context(), error),
            },
        }
    }

    /// The error of a consumer.
    fn unread(&self, consumer: &BaseConsumer<Context>, error: &KafkaError) -> SendError {
        // It waits in a queue.
        (0..FAULTS).for_each(|_| drop(consumer.poll(Duration::ZERO)));
        self.fault(consumer.context(), error)
    }

    fn fault(&self, context: &Context, error: &KafkaError) -> SendError {
        let reason = lock(&context.fault).take().map(|fault| format!(": {fault}"));
        let text = format!("{error}{}", reason.unwrap_or_default());
        SendError::Broker(self.config.redact(&text))
    }
}
