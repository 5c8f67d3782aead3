//! Sending to a topic of Apache Kafka: real brokers, real deaths, a consumer that counts.

mod broker;
mod deaths;
mod place;
mod refusals;
mod sending;
