//! Many logs, a line for each.

use vellum::internal::escaped;
use vellum::ship::{ShipState, ShipStatus};
use vellum::stat::{ParticipantStat, ProcessState, Stat};
use vellum_command::outcome::as_typed;

use super::logs::{Found, State};
use crate::table::{ALERT, Align, Table, bytes, count};

/// The table; rates are in it with --watch.
pub(super) fn text(found: &[Found], has_rates: bool) -> String {
    let mut table = Table::new(&[
        ("log", Align::Left),
        ("on disk", Align::Right),
        ("unsynced", Align::Right),
        (READERS, Align::Right),
        (SHIPPER, Align::Right),
        (RATE, Align::Right),
        ("trouble", Align::Left),
    ]);
    for log in found {
        table.row(cells(log));
    }
    let states = || found.iter().filter_map(|log| log.state.as_ref().ok());
    let is_used = [
        (READERS, states().any(|state| !state.stat.cursors.is_empty())),
        (SHIPPER, states().any(|state| state.stat.ship.is_shipped())),
        (RATE, has_rates),
    ];
    let unused = is_used.into_iter().filter(|(_, is_used)| !is_used).map(|(name, _)| name);
    table.without(&unused.collect::<Vec<_>>()).render()
}

const READERS: &str = "readers behind";
const SHIPPER: &str = "to ship";
const RATE: &str = "appended/s";

fn cells(log: &Found) -> [String; 7] {
    let name = escaped(log.path.display()).to_string();
    let nothing = || String::from("-");
    let state = match &log.state {
        Ok(state) => state,
        Err(error) => {
            let trouble = alert(&as_typed(error));
            return [name, nothing(), nothing(), nothing(), nothing(), nothing(), trouble];
        }
    };
    let State { stat, disk_bytes, rates, .. } = state;
    let readers = stat.cursors.iter().map(|cursor| cursor.lag_bytes).max();
    let to_ship = Some(stat.ship.lag_bytes).filter(|_| stat.ship.is_shipped());
    let trouble = trouble(state).join("; ");
    [
        name,
        bytes(*disk_bytes),
        bytes(stat.unsynced_bytes),
        readers.map_or_else(nothing, bytes),
        to_ship.map_or_else(nothing, bytes),
        rates.as_ref().map_or_else(nothing, |rates| bytes(rates.appended_bytes)),
        if trouble.is_empty() { nothing() } else { alert(&trouble) },
    ]
}

fn alert(text: &str) -> String {
    format!("{ALERT}{}{ALERT:#}", escaped(text))
}

/// The troubles that need attention, in few words.
fn trouble(State { stat, is_disk_full, .. }: &State) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(is_disk_full.then(|| "the disk is full".into()));
    if stat.poison.is_some() {
        all.push("poisoned".into());
    }
    match stat.gaps.len() as u64 {
        0 => {}
        1 => all.push("1 file is missing or cut short".into()),
        files => all.push(format!("{files} files are missing or cut short")),
    }
    if stat.dropped > 0 {
        all.push(format!("{} dropped, when there was no space", count(stat.dropped, "record")));
    }
    all.extend(stat.cursors_fault.is_some().then(|| "the cursors cannot be read".into()));
    let overrun = stat.cursors.iter().filter(|cursor| cursor.missing_bytes > 0);
    all.extend(overrun.map(|cursor| format!("cursor {} is overrun", cursor.name)));
    all.extend(shipping(&stat.ship));
    all.extend(processes(stat));
    all
}

fn shipping(ship: &ShipState) -> Option<String> {
    match ship.status {
        ShipStatus::None if ship.is_shipped() => Some("no process ships it".into()),
        ShipStatus::None | ShipStatus::Running => None,
        ShipStatus::Gap => Some("records were removed before they were shipped".into()),
        status => Some(format!("shipping is {}", status.as_str())),
    }
}

/// Those that others wait for, or will, and those that died.
fn processes(stat: &Stat) -> Vec<String> {
    let mut all = Vec::new();
    let holder = stat.held_back_by();
    let told =
        |participant: &&ParticipantStat| holder.is_none_or(|holder| holder.pid != participant.pid);
    if let Some(ParticipantStat { pid, alive, stopped, .. }) = holder {
        match (alive, stopped) {
            (false, _) => all.push(format!("held back by process {pid}, which died")),
            (true, true) => all.push(format!("held back by process {pid}, which is stopped")),
            // It continues by itself.
            (true, false) => {}
        }
    } else if let Some(hold) = stat.holds.iter().find(|hold| hold.state == ProcessState::Stopped) {
        all.push(hold.to_string());
    }
    match stat.participants.iter().filter(told).filter(|participant| !participant.alive).count() {
        0 => {}
        1 => all.push("1 process died with it open".into()),
        dead => all.push(format!("{dead} processes died with it open")),
    }
    all
}
