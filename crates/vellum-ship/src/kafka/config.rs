//! Options that librdkafka is given, and those that never leave this process.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use super::SendError;

/// Variables of the environment that are options: `VELLUM_KAFKA_SASL_PASSWORD` is `sasl.password`.
const PREFIX: &str = "VELLUM_KAFKA_";
/// Each record arriving once rests on these.
const OURS: [&str; 9] = [
    "bootstrap.servers",
    "metadata.broker.list",
    "transactional.id",
    "enable.idempotence",
    "acks",
    "request.required.acks",
    "isolation.level",
    "group.id",
    "enable.auto.commit",
];
/// Shorter values are no secrets: they would punch holes into ordinary words.
const MIN_SECRET: usize = 4;

/// Options of librdkafka that the user has chosen.
#[derive(Clone, Default)]
pub struct Config {
    pairs: Vec<(String, String)>,
}

impl Config {
    /// The options in the environment, then those of the command line, `KEY=VALUE` each.
    ///
    /// # Errors
    ///
    /// Names an option that cannot be chosen; never its value.
    pub fn new(
        environment: impl Iterator<Item = (String, String)>,
        options: &[String],
    ) -> Result<Config, SendError> {
        let mut pairs: Vec<(String, String)> = environment
            .filter_map(|(name, value)| Some((key(name.strip_prefix(PREFIX)?), value)))
            .collect();
        for option in options {
            let (key, value) = option.split_once('=').ok_or_else(|| {
                SendError::Option("--kafka-config needs KEY=VALUE, as sasl.username=app".into())
            })?;
            pairs.push((key.trim().to_string(), value.to_string()));
        }
        match pairs.iter().find(|(key, _)| OURS.contains(&key.as_str())) {
            Some((key, _)) => Err(SendError::Option(format!(
                "the option {key} of Kafka cannot be chosen: each record arriving once rests on it"
            ))),
            None => Ok(Config { pairs }),
        }
    }

    /// A client of these brokers.
    pub(super) fn client(&self, brokers: &str) -> ClientConfig {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", brokers).set("client.id", "vellum-ship");
        client.set_log_level(RDKafkaLogLevel::Error);
        for (key, value) in &self.pairs {
            client.set(key, value);
        }
        client
    }

    /// The text without the values of options.
    pub(super) fn redact(&self, text: &str) -> String {
        let values = self.pairs.iter().filter(|(key, _)| is_secret(key)).map(|(_, value)| value);
        let long = values.filter(|value| value.len() >= MIN_SECRET);
        long.fold(text.trim().to_string(), |text, value| text.replace(value, "[hidden]"))
    }

    /// Why there is no client.
    pub(super) fn refused(&self, error: &KafkaError) -> SendError {
        SendError::Option(match error {
            KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, key, _) => {
                format!("librdkafka has no option {key}")
            }
            // Its text quotes the value.
            KafkaError::ClientConfig(_, _, key, _) => {
                format!("librdkafka, as it is built here, refuses the value of {key}{}", hint(key))
            }
            error => self.redact(&format!("librdkafka: {error}")),
        })
    }
}

fn hint(key: &str) -> &'static str {
    let is_ssl = key.starts_with("ssl.") || key.starts_with("sasl.") || key.contains("protocol");
    match is_ssl && cfg!(not(feature = "kafka-ssl")) {
        true => ": TLS and SASL SCRAM need the feature kafka-ssl",
        false => "",
    }
}

fn key(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', ".")
}

fn is_secret(key: &str) -> bool {
    ["password", "secret", "token", "key", "pem", "oauthbearer", "username"]
        .iter()
        .any(|part| key.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> std::vec::IntoIter<(String, String)> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        pairs.iter().map(owned).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn the_command_line_stands_above_the_environment() {
        let variables = [("VELLUM_KAFKA_SASL_USERNAME", "one"), ("HOME", "/"), ("KAFKA_OPTS", "x")];
        let options = ["sasl.username=two".to_string()];
        let config = Config::new(environment(&variables), &options).unwrap();
        assert_eq!(config.client("a").get("sasl.username"), Some("two"));
        assert_eq!(config.client("a").get("opts"), None);
    }

    #[test]
    fn what_exactly_once_rests_on_cannot_be_chosen() {
        for key in OURS {
            let refused = Config::new(environment(&[]), &[format!("{key}=hunter2")]);
            let error = refused.err().unwrap().to_string();
            assert!(error.contains(key) && !error.contains("hunter2"), "{error}");
        }
        assert!(Config::new(environment(&[("VELLUM_KAFKA_ACKS", "1")]), &[]).is_err());
    }

    #[test]
    fn errors_do_not_repeat_values() {
        let options = ["sasl.password=hunter2".to_string(), "linger.ms=hunter2".to_string()];
        let config = Config::new(environment(&[]), &options).unwrap();
        assert_eq!(config.redact("bad hunter2 "), "bad [hidden]");
        let error = config.client("a").create::<rdkafka::producer::BaseProducer>().err().unwrap();
        let refused = config.refused(&error).to_string();
        assert!(refused.contains("linger.ms") && !refused.contains("hunter2"), "{refused}");
    }
}
