//! The plot: for each row one bar, how ours compares with the raw reference; and below, second by second, the rates of
//! the samples that were long enough to show whether they stay flat.

use super::{Measured, Report, Row};
use crate::contender::Kind;
use crate::options::Suite;
use anyhow::{Context as _, anyhow};
use mailslot_load::float;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const WIDTH: u32 = 900;
const ROW_HEIGHT: u32 = 22;
const MARGIN: u32 = 90;

/// Of the plot of one row's rates.
const RATES_HEIGHT: u32 = 220;

/// What is beside the bars: the names.
const NAMES_WIDTH: u32 = 420;

/// The longest bar; a ratio above it is cut.
const RATIO_MAX: f64 = 2.0;

const OURS: RGBColor = RGBColor(60, 110, 170);
const THEIRS: RGBColor = RGBColor(170, 170, 170);

type Drawing<'d> = DrawingArea<SVGBackend<'d>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn Error + Send + Sync>>;

pub(super) fn draw(report: &Report, path: &Path) -> anyhow::Result<()> {
    let bars: Vec<(String, f64)> = report.rows.iter().filter_map(bar).collect();
    let lines: Vec<&Row> = report.rows.iter().filter(|row| shows_rates(row)).collect();
    let count = |items: usize| u32::try_from(items).context("too many rows to draw");
    let bars_height = MARGIN + ROW_HEIGHT * count(bars.len())?;
    let height = bars_height + RATES_HEIGHT * count(lines.len())?;
    let drawing = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    draw_all(&drawing, bars_height, &bars, &lines).map_err(|error| anyhow!("failed to draw: {error}"))?;
    drawing.present().with_context(|| format!("failed to write {}", path.display()))
}

fn draw_all(drawing: &Drawing<'_>, bars_height: u32, bars: &[(String, f64)], lines: &[&Row]) -> Drawn {
    drawing.fill(&WHITE)?;
    let (upper, lower) = drawing.split_vertically(bars_height);
    draw_bars(&upper, bars)?;
    let areas = lower.split_evenly((lines.len().max(1), 1));
    areas.iter().zip(lines).try_for_each(|(area, row)| draw_rates(area, row))
}

/// Its name and how ours compares with the raw reference.
fn bar(row: &Row) -> Option<(String, f64)> {
    let ratio = raw_of(row).or_else(|| row.measured.get(1))?.ratio;
    Some((name(row), ratio))
}

fn name(row: &Row) -> String {
    format!("{} / {} / {}", row.suite.name(), row.store.name(), row.case)
}

fn raw_of(row: &Row) -> Option<&Measured> {
    row.measured.iter().find(|measured| measured.kind == Kind::Raw)
}

fn shows_rates(row: &Row) -> bool {
    row.suite == Suite::Both && row.measured.first().is_some_and(|ours| !ours.rates.is_empty())
}

fn draw_bars(drawing: &Drawing<'_>, bars: &[(String, f64)]) -> Drawn {
    let names = |place: &usize| bars.get(*place).map_or_else(String::new, |(name, _)| name.clone());
    let mut chart = ChartBuilder::on(drawing)
        .caption("Mailslot beside the raw reference (1 = as fast)", ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(28)
        .y_label_area_size(NAMES_WIDTH)
        .build_cartesian_2d(0.0..RATIO_MAX, (0..bars.len().max(1)).into_segmented())?;
    let name_of = |place: &SegmentValue<usize>| match place {
        SegmentValue::CenterOf(place) | SegmentValue::Exact(place) => names(place),
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(bars.len().max(1))
        .y_label_formatter(&name_of)
        .label_style(("sans-serif", 13))
        .draw()?;
    chart.draw_series(bars.iter().enumerate().map(|(place, (_, ratio))| {
        let corners =
            [(0.0, SegmentValue::Exact(place)), (ratio.min(RATIO_MAX), SegmentValue::Exact(place + 1))];
        let mut bar = Rectangle::new(corners, OURS.filled());
        bar.set_margin(3, 3, 0, 0);
        bar
    }))?;
    let ends = [(1.0, SegmentValue::Exact(0)), (1.0, SegmentValue::Exact(bars.len()))];
    chart.plotting_area().draw(&PathElement::new(ends, BLACK.mix(0.6)))?;
    Ok(())
}

fn draw_rates(drawing: &Drawing<'_>, row: &Row) -> Drawn {
    let shown = || row.measured.iter().filter(|measured| !measured.rates.is_empty());
    let seconds = shown().map(|measured| measured.rates.len()).max().unwrap_or_default();
    let highest = shown().flat_map(|measured| &measured.rates).copied().fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(drawing)
        .caption(format!("{}: executed in each second", name(row)), ("sans-serif", 14))
        .margin(10)
        .x_label_area_size(28)
        .y_label_area_size(70)
        .build_cartesian_2d(1.0..float(seconds as u64).max(2.0), 0.0..highest * 1.1)?;
    chart.configure_mesh().label_style(("sans-serif", 12)).draw()?;
    for measured in shown() {
        let colour = if measured.kind == Kind::Mailslot { OURS } else { THEIRS };
        let points = measured.rates.iter().enumerate();
        let points = points.map(|(place, rate)| (float(place as u64) + 1.0, *rate));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(measured.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    chart.configure_series_labels().position(SeriesLabelPosition::LowerRight).draw()?;
    Ok(())
}
