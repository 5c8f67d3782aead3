//! The HTML report in a real browser: drawn, sorted, light and dark, on a phone.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::browser::Browser;
use super::support::{Place, run};

/// Text that no page may take for markup.
const EVIL: &str = "</script><img src=x onerror=\"fail()\"> & 'quotes' \"too\"";

/// A row with figures that differ from round to round.
fn row(table: &str, keys: &[(&str, &str)], value: f64) -> Value {
    let keys = [&[("filesystem", "ext4")], keys].concat();
    let keys: Vec<Value> =
        keys.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let samples = [value * 0.9, value, value * 1.2];
    json!({
        "table": table, "keys": keys, "verified": true, "skipped": null, "failed": null,
        "metrics": [{ "name": "write", "unit": "GB/s", "better": "higher", "samples": samples }],
    })
}

fn without_figures(mut row: Value, why: &str) -> Value {
    row["metrics"] = json!([]);
    row["verified"] = false.into();
    row[why] = EVIL.into();
    row
}

/// Every kind of chart, rows without figures, names that are too long and words that bite.
fn rows() -> Vec<Value> {
    let mut rows = Vec::new();
    for (index, way) in ["write", "pwrite", EVIL].into_iter().enumerate() {
        for (step, chunk) in ["1 KiB", "64 KiB", "1 MiB"].into_iter().enumerate() {
            let value = (step + 1) as f64 * (3.0 - index as f64 * 0.9);
            rows.push(row("simple", &[("way", way), ("chunk", chunk)], value));
        }
    }
    for (index, factor) in [0.001, 1.0, 900.0].into_iter().enumerate() {
        let name = format!("method-{index}-{}", "with-a-long-name-".repeat(9));
        rows.push(row("create", &[("method", &name)], factor));
    }
    rows.push(without_figures(row("create", &[("method", "one that can't")], 0.0), "skipped"));
    rows.push(without_figures(row("create", &[("method", "one that broke")], 0.0), "failed"));
    for way in ["a", "b"] {
        let mut row = row("latencies", &[("way", way)], 7.0);
        let times: Vec<[f64; 2]> = (0..900).map(|x| [f64::from(x), f64::from(x % 7)]).collect();
        row["series"] = json!([
            { "name": "latency percentiles", "x": "percentile", "y": "us",
              "points": [[50, 12], [99, 230], [99.9, 4000], [100, 90_000]] },
            { "name": "IOPS over time", "x": "s", "y": "IOPS", "points": times },
        ]);
        rows.push(row);
    }
    rows
}

/// A page of a real run and a made-up one.
fn page(place: &Place) -> PathBuf {
    let path = |name: &str| place.dir().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_string();
    let (real, made_up, page) = (text("real.json"), text("made-up.json"), text("page #1?.html"));
    let dir = place.dir().to_str().unwrap();
    let bench = ["bench", "sync", "--dir", dir, "--rounds", "2", "--bytes", "16K", "--json", &real];
    run(&bench, b"").good();
    let mut document: Value = serde_json::from_slice(&fs::read(&real).unwrap()).unwrap();
    document["suite"] = format!("made up {EVIL}").into();
    document["warnings"] = json!([EVIL]);
    document["conditions"]["command_line"] = json!(["vellum", EVIL]);
    // As older versions wrote it.
    document["format"] = 1.into();
    document.as_object_mut().unwrap().remove("rows");
    document["cases"] = rows().into();
    fs::write(&made_up, document.to_string()).unwrap();
    assert_eq!(run(&["bench", "report", &made_up, &real, "--html", &page], b"").good(), "");
    let shown = path("page.html");
    fs::rename(page, &shown).unwrap();
    shown
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return vellum_testing::missing::skip("no chromium here; `make extras` installs it");
    };
    let place = Place::new();
    let page = page(&place);
    browser.prefer("light");
    browser.resize(1200, 900);
    browser.open(&page);
    charts_are_drawn(&mut browser);
    tables_are_sorted(&mut browser);
    figures_are_shown_under_the_pointer(&mut browser);
    the_data_can_be_taken_out(&mut browser);
    light_and_dark_differ(&mut browser);
    for width in [1200, 390, 320] {
        browser.resize(width, 800);
        let needed = browser.evaluate("document.documentElement.scrollWidth");
        assert!(needed.as_u64() <= Some(u64::from(width)), "{needed} at {width}");
    }
    assert_eq!(browser.complaints(), Vec::<Value>::new());
    // The checks above are worth something only if complaints are heard.
    browser.evaluate("setTimeout(() => fail()); new Image().src = 'https://vellum.invalid/'; 0");
    browser.evaluate("document.body.offsetWidth");
    assert!(!browser.complaints().is_empty());
}

fn charts_are_drawn(browser: &mut Browser) {
    let charts = browser.evaluate(
        "[...document.querySelectorAll('figure')].map((figure) => {
            const svg = figure.querySelector(':scope > svg');
            const { width, height } = svg.viewBox.baseVal;
            const marks = [...svg.querySelectorAll('.mark')];
            const isOutside = (box) => !(box.width > 0 && box.height > 0 && box.x >= -6 && box.y >= -6
                && box.x + box.width <= width + 6 && box.y + box.height <= height + 6);
            const attributes = [...svg.querySelectorAll('*')].flatMap((e) => [...e.attributes]);
            const isDrawing = (a) => !['data-tip', 'class', 'id'].includes(a.name);
            return {
                title: figure.querySelector('.title').textContent,
                marks: marks.length,
                outside: marks.filter((mark) => isOutside(mark.getBBox())).length,
                bad: attributes.filter((a) => isDrawing(a) && /NaN|inf|undefined/.test(a.value)).length,
                width: svg.getBoundingClientRect().width,
                described: !!document.getElementById(svg.getAttribute('aria-labelledby'))
                    && svg.querySelector('desc').textContent.length > 10,
            };
        })",
    );
    let charts = charts.as_array().unwrap();
    // Bars of four tables, two lines by chunk and series, at the least.
    assert!(charts.len() >= 7, "{charts:?}");
    for chart in charts {
        assert!(chart["marks"].as_u64() > Some(0), "{chart}");
        assert_eq!((&chart["outside"], &chart["bad"]), (&0.into(), &0.into()), "{chart}");
        assert!(chart["width"].as_f64() > Some(200.0) && chart["described"] == true, "{chart}");
    }
    for title in ["write by chunk", "latency percentiles", "IOPS over time"] {
        assert!(charts.iter().any(|chart| chart["title"] == title), "{title}");
    }
}

/// The texts of the first and the numbers of the second column of the table of creations.
const CREATED: &str = "(() => {
    const table = [...document.querySelectorAll('table.figures')]
        .find((table) => table.textContent.includes('method-0'));
    const heading = table.tHead.rows[0].cells[1];
    return {
        names: [...table.tBodies[0].rows].map((row) => row.cells[0].textContent.slice(0, 8)),
        sort: heading.getAttribute('aria-sort'),
        click: () => heading.querySelector('button').click(),
        focus: () => heading.querySelector('button').focus(),
    };
})()";

fn tables_are_sorted(browser: &mut Browser) {
    let order = |browser: &mut Browser| {
        let order = browser.evaluate(&format!("[{CREATED}.sort, ...{CREATED}.names].join()"));
        order.as_str().unwrap().to_string()
    };
    assert_eq!(order(browser), "none,method-0,method-1,method-2,one that,one that");
    browser.evaluate(&format!("{CREATED}.click()"));
    assert_eq!(order(browser), "ascending,method-0,method-1,method-2,one that,one that");
    // Down by the keyboard; rows without figures stay below.
    browser.evaluate(&format!("{CREATED}.focus()"));
    browser.press_enter();
    assert_eq!(order(browser), "descending,method-2,method-1,method-0,one that,one that");
}

fn figures_are_shown_under_the_pointer(browser: &mut Browser) {
    let tip = browser.evaluate(
        "document.querySelector('.line .mark').dispatchEvent(
            new PointerEvent('pointerover', { bubbles: true, clientX: 50, clientY: 50 }));
        [document.getElementById('tip').textContent, document.querySelectorAll('.faded').length]",
    );
    assert!(tip[0].as_str().unwrap().contains("GB/s"), "{tip}");
    assert!(tip[1].as_u64() > Some(0), "{tip}");
}

fn the_data_can_be_taken_out(browser: &mut Browser) {
    let suites = browser.evaluate(
        "[...document.querySelectorAll('script[type=\"application/json\"]')]
            .map((script) => JSON.parse(script.textContent).suite)",
    );
    assert_eq!(suites, json!([format!("made up {EVIL}"), "sync"]));
    let names = browser.evaluate(
        "(() => {
            const names = [];
            HTMLAnchorElement.prototype.click = function () { names.push(this.download, this.href); };
            document.querySelector('#data button:last-of-type').click();
            return names;
        })()",
    );
    assert!(names[0].as_str().unwrap().starts_with("sync-20"), "{names}");
    assert!(names[1].as_str().unwrap().starts_with("blob:"), "{names}");
}

fn light_and_dark_differ(browser: &mut Browser) {
    const PAPER: &str = "getComputedStyle(document.body).backgroundColor";
    let light = browser.evaluate(PAPER);
    browser.evaluate("document.getElementById('theme').click()");
    let dark = browser.evaluate(PAPER);
    assert_ne!(light, dark);
    browser.evaluate("document.getElementById('theme').click()");
    assert_eq!(browser.evaluate(PAPER), light);
    // Without the button the system's choice holds.
    browser.evaluate("delete document.documentElement.dataset.theme");
    browser.prefer("dark");
    assert_eq!(browser.evaluate(PAPER), dark);
    browser.prefer("light");
}
