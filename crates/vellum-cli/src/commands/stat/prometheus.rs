//! The numbers of logs in the text format of Prometheus.

use prometheus::TextEncoder;
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};
use vellum::ship::ShipState;
use vellum::stat::{CommitStat, CursorStat, Hold, Metrics};
use vellum_ship_figures::Figures;

use super::logs::{Found, State};
use super::ship::shipped_at;

/// One family for each number; `log` names the log in all of them.
pub(super) fn text(found: &[Found]) -> anyhow::Result<String> {
    let mut page = Page { log: String::new(), families: Vec::new() };
    for Found { path, state } in found {
        page.log = path.display().to_string();
        let help = "1 if the log can be looked at";
        page.level("readable", help, f64::from(state.is_ok()));
        if let Ok(state @ State { metrics: Some(metrics), .. }) = state {
            page.log(state, metrics);
        }
    }
    Ok(TextEncoder::new().encode_to_string(&page.families)?)
}

struct Page {
    log: String,
    families: Vec<MetricFamily>,
}

impl Page {
    fn log(&mut self, State { stat, figures, disk_bytes, .. }: &State, metrics: &Metrics) {
        self.positions(metrics);
        let help = "Bytes of log that a power cut may take";
        self.level("unsynced_bytes", help, stat.unsynced_bytes as f64);
        let help = "Bytes that the log's directory takes on disk";
        self.level("disk_bytes", help, *disk_bytes as f64);
        self.appends(metrics);
        self.commits(&metrics.commits);
        self.losses(metrics);
        self.processes(metrics);
        let help = "Files that are missing, empty or cut short";
        self.level("missing_files", help, stat.gaps.len() as f64);
        let help = "1 if the cursors cannot be read, so that nothing is removed";
        self.level("cursors_fault", help, f64::from(stat.cursors_fault.is_some()));
        self.cursors(&stat.cursors);
        self.ship(&stat.ship, figures);
    }

    fn positions(&mut self, metrics: &Metrics) {
        let positions = [
            ("begin", metrics.begin),
            ("durable", metrics.durable),
            ("published", metrics.published),
            ("tail", metrics.tail),
            ("checkpoint", metrics.checkpoint),
        ];
        let samples =
            positions.map(|(which, lsn)| self.gauge(&[("which", which)], lsn.get() as f64));
        let help = "Byte positions (LSNs) of the log; durable survives a power cut";
        self.family("position_bytes", help, MetricType::GAUGE, samples.into());
    }

    fn appends(&mut self, metrics: &Metrics) {
        self.total("records", "Records appended", metrics.records);
        let help = "Bytes of log that records take, with headers and padding";
        self.total("record_bytes", help, metrics.record_bytes);
        self.total("segments_made", "Segments (files) made", metrics.segments_made);
        let help = "Bytes that wait in the stage until they are committed";
        self.level("staged_bytes", help, metrics.staged_bytes as f64);
        let removed = &metrics.removed;
        let rules =
            [("bytes", removed.by_bytes), ("age", removed.by_age), ("files", removed.by_files)];
        let files = rules.map(|(rule, of)| self.counter(&[("rule", rule)], of.files));
        let bytes = rules.map(|(rule, of)| self.counter(&[("rule", rule)], of.bytes));
        let (counter, help) =
            (MetricType::COUNTER, "Files that retention has removed, by its rule");
        self.family("removed_files_total", help, counter, files.into());
        self.family("removed_bytes_total", "Bytes of text in them", counter, bytes.into());
    }

    fn commits(&mut self, commits: &CommitStat) {
        self.total("commits", "Calls that asked for durability", commits.commits);
        self.total("synced_bytes", "Bytes that syncs made durable", commits.synced_bytes);
        let mut metric = self.metric(&[]);
        metric.set_histogram(histogram(commits));
        let help = "Time of the writes or syncs of the device that commits took";
        self.family("sync_seconds", help, MetricType::HISTOGRAM, vec![metric]);
    }

    fn losses(&mut self, metrics: &Metrics) {
        let help = "Records dropped because the disk was full";
        self.total("dropped_records", help, metrics.dropped);
        let help = "Times that space was looked for in vain";
        self.total("full_tries", help, metrics.full_tries);
        let help = "Reservations of dead processes that were padded";
        self.total("repairs", help, metrics.repairs);
        self.total("repaired_bytes", "Bytes of those", metrics.repaired_bytes);
        let help = "1 after a failed write or sync of the device";
        self.level("poisoned", help, f64::from(metrics.is_poisoned));
    }

    fn processes(&mut self, metrics: &Metrics) {
        let help = "Processes that have the log open for writing";
        self.level("participants", help, metrics.participants as f64);
        let holds: Vec<Metric> = metrics.holds.iter().map(|hold| self.hold(hold)).collect();
        if !holds.is_empty() {
            let help = "For how long others have waited for what a process holds";
            self.family("hold_waited_seconds", help, MetricType::GAUGE, holds);
        }
    }

    fn cursors(&mut self, cursors: &[CursorStat]) {
        type Figure = fn(&CursorStat) -> Option<f64>;
        let figures: [(&str, &str, Figure); 6] = [
            ("cursor_position_bytes", "Where the cursor is (LSN)", |c| Some(c.lsn.get() as f64)),
            ("cursor_lag_bytes", "Bytes of log that its reader has not finished", |cursor| {
                Some(cursor.lag_bytes as f64)
            }),
            ("cursor_lag_seconds", "Age of the oldest record that is not finished", |cursor| {
                cursor.lag_time.map(|time| time.as_secs_f64())
            }),
            ("cursor_holds", "1 if it keeps records from being removed", |cursor| {
                Some(f64::from(cursor.hold.is_some()))
            }),
            ("cursor_owned", "1 if a process owns it", |c| Some(f64::from(c.is_owned))),
            ("cursor_missing_bytes", "Bytes removed in front of it, at most", |cursor| {
                Some(cursor.missing_bytes as f64)
            }),
        ];
        for (name, help, figure) in figures {
            let sample = |cursor: &CursorStat| {
                Some(self.gauge(&[("cursor", &cursor.name)], figure(cursor)?))
            };
            let samples: Vec<Metric> = cursors.iter().filter_map(sample).collect();
            if !samples.is_empty() {
                self.family(name, help, MetricType::GAUGE, samples);
            }
        }
    }

    /// Nothing for a log that is not shipped.
    fn ship(&mut self, state: &ShipState, figures: &Figures) {
        if !state.is_shipped() {
            return;
        }
        let fault = state.fault.map_or("", |(fault, _)| fault.as_str());
        let labels = [("status", state.status.as_str()), ("fault", fault)];
        let sample = self.gauge(&labels, 1.0);
        let help = "1, with how shipping goes and what failed last";
        self.family("ship_status", help, MetricType::GAUGE, vec![sample]);
        let help = "End of what is shipped (LSN), 0 where that is not known since the last boot";
        self.level("shipped_bytes", help, state.shipped.get() as f64);
        self.level("ship_lag_bytes", "Bytes durable and not shipped", state.lag_bytes as f64);
        let help = "When the shipper has last shipped something, in seconds since 1970";
        self.level("shipped_time_seconds", help, shipped_at(figures).unwrap_or(0) as f64);
        self.level("ship_generation", "Generation shipped to", figures.generation as f64);
        self.total("ship_puts", "Requests that make an object", figures.puts);
        self.total("ship_gets", "All other requests", figures.gets);
        self.total("ship_retries", "Requests made once more", figures.retries);
        self.total("ship_log_bytes", "Bytes of log shipped", figures.log_bytes);
        self.total("ship_sent_bytes", "Bytes sent for them", figures.sent_bytes);
    }

    fn hold(&self, hold: &Hold) -> Metric {
        let pid = hold.pid.map_or_else(String::new, |pid| pid.to_string());
        let (what, state) = (hold.what.to_string(), hold.state.to_string());
        let waited = hold.waited.unwrap_or_default();
        self.gauge(&[("what", &what), ("pid", &pid), ("state", &state)], waited.as_secs_f64())
    }

    fn total(&mut self, name: &str, help: &str, value: u64) {
        let samples = vec![self.counter(&[], value)];
        self.family(&format!("{name}_total"), help, MetricType::COUNTER, samples);
    }

    fn level(&mut self, name: &str, help: &str, value: f64) {
        let samples = vec![self.gauge(&[], value)];
        self.family(name, help, MetricType::GAUGE, samples);
    }

    /// Each family is there once, with the samples of all logs.
    fn family(&mut self, name: &str, help: &str, kind: MetricType, samples: Vec<Metric>) {
        let name = format!("vellum_{name}");
        if let Some(family) = self.families.iter_mut().find(|family| family.name() == name) {
            family.mut_metric().extend(samples);
            return;
        }
        let mut family = MetricFamily::default();
        family.set_name(name);
        family.set_help(help.into());
        family.set_field_type(kind);
        family.set_metric(samples);
        self.families.push(family);
    }

    fn counter(&self, labels: &[(&str, &str)], value: u64) -> Metric {
        let mut counter = Counter::default();
        counter.set_value(value as f64);
        let mut metric = self.metric(labels);
        metric.set_counter(counter);
        metric
    }

    fn gauge(&self, labels: &[(&str, &str)], value: f64) -> Metric {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut metric = self.metric(labels);
        metric.set_gauge(gauge);
        metric
    }

    fn metric(&self, labels: &[(&str, &str)]) -> Metric {
        let log = [("log", self.log.as_str())];
        let labels = log.iter().chain(labels).map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).into());
            pair.set_value((*value).into());
            pair
        });
        Metric::from_label(labels.collect())
    }
}

/// Entry `i` of the library's counts has the syncs below 2^i microseconds that are in no earlier
/// one; the last has all longer ones too.
fn histogram(commits: &CommitStat) -> Histogram {
    let mut seen = 0;
    let bounded = commits.sync_micros.len() - 1;
    let buckets = commits.sync_micros[..bounded].iter().enumerate().map(|(power, count)| {
        seen += count;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound((1_u64 << power) as f64 / 1e6);
        bucket.set_cumulative_count(seen);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(commits.sync_micros.iter().sum());
    histogram.set_sample_sum(commits.sync_micros_sum as f64 / 1e6);
    histogram
}
