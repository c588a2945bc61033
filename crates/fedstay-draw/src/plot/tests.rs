//! Laws that hold for every layer.

use super::*;

/// A plain and two textured categories.
fn categories() -> Vec<Category> {
    let patterns = [Pattern::Plain, Pattern::Hatch, Pattern::Dots];
    let fill = |pattern| Fill::texture(pattern, Colour::INK);
    patterns.map(|pattern| Category { name: format!("{pattern:?}"), fill: fill(pattern) }).to_vec()
}

/// Every kind of layer, fed with `v` wherever a number goes.
fn every_layer(v: f64) -> Vec<Layer> {
    let style = Style::of("fedavg");
    let grid = || Grid::sample((0.0, v), (v, 1.0), 5, 5, |x, y| x * y + v);
    let mut line = Line::new("line", vec![(0.0, 1.0), (1.0, v), (v, 3.0), (2.0, 2.0)], style);
    line.markers = true;
    vec![
        line.clone().into(),
        Line { arrows: true, ..line }.into(),
        Band::new("band", vec![(0.0, v, 1.0), (1.0, 0.0, 2.0), (v, v, v)], style.colour).into(),
        Points::new("points", vec![(v, v), (1.0, 1.0)], Marker::Star, Colour::BLUE).into(),
        Guide::vertical(v, "leaves").into(),
        Guide::horizontal(v, "ε").into(),
        Region::new("set", grid(), v, Style::agent(1)).into(),
        Region::dotted("bad region", grid(), 0.5, Colour::INK).into(),
        Contours::new("levels", grid(), vec![v, 0.5], style).into(),
        Arrows::new("flow", vec![((v, 1.0), (1.0, v)), ((1.0, 1.0), (0.0, 0.0))]).into(),
        Cells::new(vec![vec![0, 0, 1, 2, 9], vec![]], categories(), v).into(),
        Bars::new(vec![BarSeries {
            errors: vec![v],
            ..BarSeries::new("bars", vec![v, 2.0], Colour::GREEN)
        }])
        .into(),
        Bars {
            stacked: true,
            show_values: true,
            ..Bars::new(vec![BarSeries::new("stack", vec![1.0, v], Colour::SKY)])
        }
        .into(),
        Note::new((v, 1.0), "two\nlines", (20.0, v)).into(),
    ]
}

fn figure(layers: Vec<Layer>, scale: Scale) -> Figure {
    let panel = Panel { layers, x_scale: scale, y_scale: scale, ..Panel::new("panel", "x", "y") };
    Figure { caption: "caption".into(), ..Figure::new("figure") }.with(panel)
}

#[test]
fn no_number_makes_a_panic_or_an_unreadable_file() {
    for v in [0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for scale in [Scale::Linear, Scale::Log] {
            for layer in every_layer(v) {
                let svg = figure(vec![layer], scale).to_svg();
                assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{v} on {scale:?}");
                assert!(png(&svg, 0.2).is_ok(), "{v} on {scale:?}:\n{svg}");
            }
            png(&figure(every_layer(v), scale).to_svg(), 0.2).expect("all layers together");
        }
    }
}

#[test]
fn nothing_to_draw_is_still_a_figure() {
    assert!(png(&Figure::new("").to_svg(), 1.0).is_ok());
    assert!(png(&Figure::new("").with(Panel::new("", "", "")).to_svg(), 1.0).is_ok());
    let odd = Figure { width: f64::NAN, columns: 3, ..figure(vec![], Scale::Log) };
    assert!(png(&odd.to_svg(), 1.0).is_ok());
}

#[test]
fn equal_figures_have_equal_bytes() {
    let draw = || figure(every_layer(1.5), Scale::Linear).to_svg();
    assert_eq!(draw(), draw());
    assert_eq!(png(&draw(), 1.0).unwrap(), png(&draw(), 1.0).unwrap());
}

#[test]
fn every_text_is_escaped() {
    let evil = "<script>alert(\"&\")</script>";
    let mut panel = Panel::new(evil, evil, evil)
        .with(Line::new(evil, vec![(0.0, 0.0), (1.0, 1.0)], Style::of(evil)))
        .with(Guide::vertical(0.5, evil))
        .with(Note::new((0.5, 0.5), evil, (10.0, 10.0)));
    panel.y_categories = vec![evil.into(), "]]>".into()];
    let figure =
        Figure { subtitle: evil.into(), caption: evil.into(), ..Figure::new(evil) }.with(panel);
    let svg = figure.to_svg();
    assert!(!svg.contains("<script"));
    assert!(svg.contains("&lt;script&gt;"));
    png(&svg, 0.5).expect("well-formed");
}

#[test]
fn panels_of_equal_aspect_are_equally_high_and_undistorted() {
    let square = |x: f64| Panel {
        equal_aspect: true,
        x_range: Some((0.0, x)),
        y_range: Some((0.0, 1.0)),
        ..Panel::new("", "", "")
    };
    assert_eq!(square(2.0).aspect(), Some(2.0));
    assert!((square(2.0).natural_height(300.0) - 150.0).abs() < 1e-9);
    assert_eq!(Panel { x_scale: Scale::Log, ..square(2.0) }.aspect(), None);
}

/// The boxes of all texts of a finished drawing, as the renderer sees them.
fn text_boxes(svg: &str) -> (resvg::usvg::Size, Vec<(String, resvg::usvg::Rect)>) {
    fn walk(group: &resvg::usvg::Group, boxes: &mut Vec<(String, resvg::usvg::Rect)>) {
        for node in group.children() {
            match node {
                resvg::usvg::Node::Group(group) => walk(group, boxes),
                resvg::usvg::Node::Text(text) => {
                    let words = text.chunks().iter().map(|c| c.text().to_owned()).collect();
                    boxes.push((words, text.abs_bounding_box()));
                }
                _ => {}
            }
        }
    }
    let tree = raster::parse(svg).expect("well-formed");
    let mut boxes = Vec::new();
    walk(tree.root(), &mut boxes);
    (tree.size(), boxes)
}

#[test]
fn no_text_is_cut_off_and_none_covers_another() {
    let rules = ["FedAvg", "ADA-GD", "retain"];
    let mut figure =
        Figure { caption: "Mean of five seeds. ".repeat(12), ..Figure::new("Accuracy") };
    for title in ["q = 0.2", "a long title that has to be wrapped", "q = 0.9"] {
        let mut panel = Panel::new(title, "round", "accuracy");
        for (k, rule) in rules.iter().enumerate() {
            let points = (0..=500)
                .map(|r| (f64::from(r), 1.0 - (-f64::from(r) / (90.0 + 20.0 * k as f64)).exp()));
            panel = panel.with(Line {
                markers: true,
                ..Line::new(*rule, points.collect(), Style::of(rule))
            });
        }
        for agent in 0..5 {
            panel = panel
                .with(Guide::vertical(120.0 + 30.0 * f64::from(agent), format!("agent {agent}")));
        }
        figure = figure.with(panel.with(Guide::horizontal(0.4, "ε")));
    }
    let names = ["FedAvg", "FedAvg with early stop", "ADA-GD"].map(String::from).to_vec();
    let bars = BarSeries::new("accuracy", vec![0.5, 0.6, 0.7], Colour::BLUE);
    let bars = Panel { x_categories: names, ..Panel::new("", "", "") }
        .with(Bars { show_values: true, ..Bars::new(vec![bars]) });
    let figure = Figure { columns: 3, ..figure.with(bars) };
    for width in [PAGE_WIDTH, 900.0] {
        let (size, boxes) = text_boxes(&Figure { width, ..figure.clone() }.to_svg());
        assert!(boxes.len() > 60);
        for (i, (text, a)) in boxes.iter().enumerate() {
            let inside = a.left() >= 0.0
                && a.top() >= 0.0
                && a.right() <= size.width()
                && a.bottom() <= size.height();
            assert!(inside, "{text} is cut off: {a:?} in {size:?}");
            for (other, b) in &boxes[i + 1..] {
                let apart = a.right() <= b.left()
                    || b.right() <= a.left()
                    || a.bottom() <= b.top()
                    || b.bottom() <= a.top();
                assert!(
                    apart || text == other && a == b,
                    "{text} covers {other} at width {width}: {a:?} {b:?}"
                );
            }
        }
    }
}

#[test]
fn values_over_narrow_bars_do_not_run_into_each_other() {
    let series = |value| BarSeries::new("accuracy", vec![value; 9], Colour::BLUE);
    let names = (0..9).map(|rule| format!("r{rule}")).collect();
    let bars = Bars { show_values: true, ..Bars::new(vec![series(100.0), series(99.0)]) };
    let panels = [
        Panel::new("", "", ""),
        Panel { x_categories: names, ..Panel::new("", "", "") }.with(bars),
    ];
    let figure = panels.into_iter().fold(Figure { columns: 2, ..Figure::new("") }, Figure::with);
    let (_, boxes) = text_boxes(&figure.to_svg());
    let values: Vec<_> = boxes.iter().filter(|(text, _)| text == "100" || text == "99").collect();
    assert!(values.len() >= 18, "{boxes:?}");
    for (index, (_, a)) in values.iter().enumerate() {
        for (_, b) in &values[index + 1..] {
            let beside = a.right() <= b.left() || b.right() <= a.left();
            assert!(beside || a.bottom() <= b.top() || b.bottom() <= a.top(), "{a:?} {b:?}");
        }
    }
}
