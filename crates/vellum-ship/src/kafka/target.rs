//! A URL of Kafka, and the names that are derived from it.

use vellum::LogId;

use super::SendError;
use crate::object::hash;

const FORM: &str = "give kafka://BROKER:PORT/TOPIC, several brokers with commas between them";
const TOPIC_MAX: usize = 249;
/// A cursor's name has 64 characters at most, and 30 of them are not the topic.
const SHOWN_MAX: usize = 34;

/// A partition of a topic, and the brokers that know where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `HOST:PORT`, with commas between them.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// The partition that gets all records of the log.
    pub partition: i32,
}

impl Target {
    /// Whether this is a URL of Kafka.
    pub fn is_url(url: &str) -> bool {
        url.starts_with("kafka:")
    }

    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// Says what a URL has to be, and never repeats a password in it.
    pub fn parse(url: &str, partition: i32) -> Result<Target, SendError> {
        let rest = url.strip_prefix("kafka://").ok_or_else(|| bad("two slashes are missing"))?;
        if rest.contains('@') {
            return Err(bad("the URL holds credentials; put them into the environment"));
        }
        let (brokers, topic) = rest.split_once('/').ok_or_else(|| bad("the topic is missing"))?;
        if brokers.is_empty() || !brokers.split(',').all(is_broker) {
            return Err(bad("a broker is HOST:PORT"));
        }
        if !is_topic(topic) {
            return Err(bad("a topic has 1 to 249 letters, digits, `.`, `_` and `-`"));
        }
        Ok(Target { brokers: brokers.into(), topic: topic.into(), partition })
    }

    /// The id that fences: one for each log and partition.
    pub(super) fn transactional_id(&self, log: LogId) -> String {
        format!("vellum-{log}-{}-{}", self.topic, self.partition)
    }

    /// The consumer group whose offset has the position.
    pub(super) fn group(log: LogId) -> String {
        format!("vellum-{log}")
    }

    /// The cursor that keeps records that are not sent yet: one for each partition of each cluster.
    pub(super) fn cursor(&self, cluster: &str) -> String {
        let whole = format!("{cluster}/{}/{}", self.topic, self.partition);
        let digest = hash(whole.as_bytes()).to_string();
        let shown = &self.topic[..self.topic.len().min(SHOWN_MAX)];
        format!("vellum-kafka-{shown}-{}", &digest[..16])
    }
}

fn bad(what: &str) -> SendError {
    SendError::Option(format!("{what}: {FORM}"))
}

fn is_broker(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

fn is_topic(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = text.chars().all(is_plain) && text != "." && text != "..";
    is_name && (1..=TOPIC_MAX).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        Target::parse(url, 0).unwrap_err().to_string()
    }

    #[test]
    fn urls_name_brokers_and_a_topic() {
        let target = Target::parse("kafka://a:9092,[::1]:9093/logs.app", 2).unwrap();
        assert_eq!(target.brokers, "a:9092,[::1]:9093");
        assert_eq!((target.topic.as_str(), target.partition), ("logs.app", 2));
    }

    #[test]
    fn other_urls_are_refused_and_say_what_to_write() {
        for url in ["kafka:/a/t", "kafka://a", "kafka:///t", "kafka://a/", "kafka://a/t/u"] {
            assert!(error(url).contains("kafka://BROKER:PORT/TOPIC"), "{url}: {}", error(url));
        }
        assert!(error("kafka://a/t?acks=1").contains("letters"));
    }

    #[test]
    fn credentials_in_a_url_are_not_repeated() {
        let error = error("kafka://user:hunter2@a:9092/t");
        assert!(error.contains("environment") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn cursors_of_other_clusters_topics_and_partitions_differ_and_are_names() {
        let target =
            |topic: &str, partition| Target { brokers: "a".into(), topic: topic.into(), partition };
        let long = "t".repeat(TOPIC_MAX);
        let name = target(&long, 0).cursor("cluster");
        assert_eq!(name.len(), 64);
        let others = [
            target(&long, 1).cursor("cluster"),
            target(&long, 0).cursor("other"),
            target(&long[1..], 0).cursor("cluster"),
        ];
        assert!(others.iter().all(|other| *other != name));
    }
}
