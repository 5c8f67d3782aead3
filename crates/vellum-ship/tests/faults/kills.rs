//! Shippers and writers that are killed at any moment, over a directory and over a server.
//!
//! `VELLUM_SHIP_KILLS` says how many kills each campaign has.

use vellum_testing::Numbers;

use crate::ledger::Ledger;
use crate::place::{Place, Shipper, good, records_in};
use crate::server::{SECRET, versitygw};
use crate::writers::{KINDS, Kind, Writer};

const KILLS: u64 = 10;
/// After so many kills what is in the store is restored.
const LOOK: u64 = 8;

fn kills() -> u64 {
    let wanted = std::env::var("VELLUM_SHIP_KILLS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// A log with a shipper and two writers: one commits here, the other one in the store.
struct Campaign<'a> {
    place: &'a Place,
    kind: Kind,
    random: Numbers,
    shipper: Shipper,
    here: Writer,
    there: Writer,
    /// How many writers there were: each has its own name.
    lives: u64,
    durable: Ledger,
    shipped: Ledger,
}

impl<'a> Campaign<'a> {
    fn begin(place: &'a Place, kind: Kind, seed: u64) -> Campaign<'a> {
        drop(kind.open(&place.path("log")));
        let writer = |name, durability| Writer::start(&place.path("log"), kind, name, durability);
        Campaign {
            place,
            kind,
            random: Numbers::new(seed),
            shipper: place.spawn("log", &[]),
            here: writer("here0", "local"),
            there: writer("there0", "remote"),
            lives: 0,
            durable: Ledger::default(),
            shipped: Ledger::default(),
        }
    }

    fn writer(&mut self, durability: &str) -> Writer {
        self.lives += 1;
        let name = format!("{durability}{}", self.lives);
        Writer::start(&self.place.path("log"), self.kind, &name, durability)
    }

    /// A moment that depends on the progress of all, and on chance.
    fn wait_for_a_moment(&mut self) {
        match self.random.below(3) {
            0 => {}
            1 => self.here.hear(&mut self.durable, 1),
            _ => {
                let count = self.random.below(4);
                self.there.hear(&mut self.shipped, count);
            }
        }
        for _ in 0..self.random.below(2000) {
            std::thread::yield_now();
        }
    }

    fn kill(&mut self) {
        assert_eq!(self.shipper.ended(), None, "it ships until it is killed");
        let what = self.random.below(6);
        if what != 4 {
            self.shipper.kill();
        }
        if what >= 4 {
            let next = self.writer("local");
            std::mem::replace(&mut self.here, next).kill(&mut self.durable);
        }
        if what == 5 || what == 3 {
            let next = self.writer("remote");
            std::mem::replace(&mut self.there, next).kill(&mut self.shipped);
        }
        if what != 4 {
            self.shipper = self.place.spawn("log", &[]);
        }
    }

    /// Everything that is acknowledged as shipped can be restored now.
    fn look(&mut self) {
        self.there.drain(&mut self.shipped);
        let restored = self.place.restored();
        self.shipped.check(&restored);
    }

    fn end(mut self) -> (Ledger, Ledger) {
        // A shipper ships the records that the last life of the writer waits for.
        self.there.hear(&mut self.shipped, 1);
        self.here.kill(&mut self.durable);
        self.there.kill(&mut self.shipped);
        self.shipper.kill();
        // Records without a commit stay in the stage, and are not shipped.
        self.kind.open(&self.place.path("log")).sync().unwrap();
        good(&self.place.ship("log", &[]));
        (self.durable, self.shipped)
    }
}

pub(crate) fn run(place: &Place, kind: Kind, seed: u64) {
    let mut campaign = Campaign::begin(place, kind, seed);
    for kill in 1..=kills() {
        campaign.wait_for_a_moment();
        campaign.kill();
        if kill % LOOK == 0 {
            campaign.there.hear(&mut campaign.shipped, 1);
            campaign.look();
        }
    }
    let (durable, shipped) = campaign.end();
    assert!(shipped.total() > 0, "something was acknowledged as shipped");
    let restored = place.restored();
    shipped.check(&restored);
    durable.check(&restored);
    assert!(restored == records_in(&place.path("log")), "{kind:?}: not what the log holds");
}

#[test]
fn staged_logs_lose_and_double_nothing_in_a_directory() {
    run(&Place::new(), Kind::Staged, 1);
}

#[test]
fn mapped_logs_lose_and_double_nothing_in_a_directory() {
    run(&Place::new(), Kind::Mapped, 2);
}

#[test]
fn text_logs_lose_and_double_nothing_in_a_directory() {
    run(&Place::new(), Kind::Text, 3);
}

#[test]
fn logs_of_all_kinds_lose_and_double_nothing_on_a_server() {
    let Some(server) = versitygw() else { return };
    for (seed, kind) in (4..).zip(KINDS) {
        run(&Place::at(&format!("s3://bucket/{kind:?}"), server.environment(SECRET)), kind, seed);
    }
}
