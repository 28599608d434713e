//! The page of explanations in a browser: it shows bars, numbers and pictures, fits where it is read, and runs nothing.
//!
//! `IPCMARK_SCREENSHOTS=DIR` keeps pictures of it, for people to look at.

use crate::browser::{Browser, assert_clean};
use crate::picture::keep;
use crate::{browser, explained, observed};
use analysis::analysed::AnalysedExplanation;
use analysis::explain::Explanation;
use report::explanation_html;
use serde_json::json;
use std::fs;

/// Opens the page of `all`, whose file is gone when this is.
fn open(browser: &mut Browser, all: &[Explanation]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let command = ["ipcmark", "explain", "pipe", "--html", "why.html"].map(str::to_owned);
    let path = directory.path().join("why.html");
    let all: Vec<_> =
        all.iter().map(|one| AnalysedExplanation::from_explanation(one, observed::call_name)).collect();
    fs::write(&path, explanation_html(&all, &[], &command)).unwrap();
    browser.open(&path);
    assert_clean(browser);
    directory
}

/// Two sizes, one of them forty times as fast, and one without a path.
fn several() -> [Explanation; 3] {
    [
        explained::explanation("pipe", 1, 2_800.0),
        explained::explanation("pipe", 65_536, 41_000.0),
        explained::without_privileges("shm-ring", 1, 410.0),
    ]
}

/// Slow: it opens a browser.
#[test]
fn bars_numbers_and_pictures_are_there_wherever_it_is_read() {
    let Some(mut browser) = browser() else { return };
    for (name, width, mobile, scheme) in [
        ("explained-light", 1280, false, "light"),
        ("explained-dark", 1280, false, "dark"),
        ("explained-phone-light", 390, true, "light"),
        ("explained-phone-dark", 390, true, "dark"),
    ] {
        browser.show_as(width, 900, mobile, scheme);
        let _page = open(&mut browser, &several());
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{name} is {wide} wide");
        // One picture of all cases and one of each of two; two typical iterations and a slow one, and the samples of the client and of the server, of two.
        let pictures = "[document.querySelectorAll('.iterations svg').length, document.querySelectorAll('.picture svg').length, document.images.length]";
        assert_eq!(browser.evaluate(pictures), json!([3, 6, 4]), "{name}");
        let loaded = "Promise.all([...document.images].map((i) => i.decode())).then(() => [...document.images].every((i) => i.naturalWidth > 0))";
        assert_eq!(browser.evaluate(loaded), true, "{name}");
        // What is written in pictures has the ink of the page, and is no smaller than fine print.
        let ink = "(() => { const t = document.querySelector('.iterations svg text'); return getComputedStyle(t).fill === getComputedStyle(document.body).color; })()";
        assert_eq!(browser.evaluate(ink), true, "{name}");
        let letters =
            "Math.min(...[...document.querySelectorAll('figure svg')].map((s) => s.getScreenCTM().a * 10.5))";
        assert!(browser.evaluate(letters).as_f64().unwrap() >= 8.0, "{name}");
        keep(&format!("{name}.png"), &browser.screenshot());
    }
    let text = browser.evaluate("document.body.innerText");
    for words in [
        "Where the time goes: latency, same-core",
        "pipe latency 64K same-core",
        "iteration without probes",
        "the sum is longer",
        "The kernel copied each byte 2.00 times",
        "from woken to running, median",
        "ipcmark explain pipe --html why.html",
    ] {
        let text = text.as_str().unwrap();
        assert!(text.contains(words), "'{words}' is not on the page:\n{text}");
    }
    browser.evaluate("document.querySelector('nav a[href=\"#case-2\"]').focus()");
    browser.press("Enter", 13, "\r");
    browser.wait_for("location.hash === '#case-2' && Math.abs(document.querySelector('#case-2').getBoundingClientRect().top) < 40");
    let pdf = browser.print();
    assert!(pdf.len() > 20_000, "the page prints as {} characters of base64", pdf.len());
    keep("explained.pdf", &pdf);
    assert_clean(&mut browser);
}

/// Slow: it opens a browser.
#[test]
fn nothing_that_was_seen_becomes_markup() {
    const HOSTILE: [&str; 6] = [
        "</script><script>window.pwned = 1</script>",
        "<img src=x onerror='window.pwned = 1'>",
        "\"'><svg onload=window.pwned=1>",
        "</style></title><a href=\"javascript:window.pwned=1\">link</a>",
        "{{body}} {{style}} <b>bold</b> &lt;i&gt; &amp;",
        "]]><foreignObject><iframe src=\"javascript:parent.pwned=1\"></iframe></foreignObject>",
    ];
    let Some(mut browser) = browser() else { return };
    for text in HOSTILE {
        let hostile = explained::hostile(text);
        let _page = open(&mut browser, &[hostile.clone(), hostile]);
        browser.evaluate("Promise.all([...document.images].map((i) => i.decode()))");
        let made = "[typeof window.pwned, document.scripts.length, document.querySelectorAll('img:not([src^=\"data:image/svg+xml;base64,\"]), iframe, b, i, [onload], [onerror], a:not([href^=\"#case-\"])').length]";
        assert_eq!(browser.evaluate(made), json!(["undefined", 0, 0]), "{text}");
        let shown = browser.evaluate("document.body.innerText");
        assert!(shown.as_str().unwrap().contains(text), "{text} is not shown as it is");
        assert_clean(&mut browser);
    }
}
