//! The plot: for each row one bar, how ours compares with the raw reference.

use super::{Report, Row};
use anyhow::{Context as _, anyhow};
use plotters::prelude::*;
use std::path::Path;

const WIDTH: u32 = 900;
const ROW_HEIGHT: u32 = 22;
const MARGIN: u32 = 90;

/// What is beside the bars: the names.
const NAMES_WIDTH: u32 = 380;

/// The longest bar; a ratio above it is cut.
const RATIO_MAX: f64 = 2.0;

pub(super) fn draw(report: &Report, path: &Path) -> anyhow::Result<()> {
    let bars: Vec<(String, f64)> = report.rows.iter().filter_map(bar).collect();
    let count = u32::try_from(bars.len()).context("too many rows to draw")?;
    let drawing = SVGBackend::new(path, (WIDTH, MARGIN + ROW_HEIGHT * count)).into_drawing_area();
    draw_bars(&drawing, &bars).map_err(|error| anyhow!("failed to draw: {error}"))?;
    drawing.present().with_context(|| format!("failed to write {}", path.display()))
}

/// Its name and how ours compares with the raw reference.
fn bar(row: &Row) -> Option<(String, f64)> {
    let ratio = row.measured.get(1)?.ratio;
    Some((format!("{} / {} / {}", row.suite.name(), row.store.name(), row.case), ratio))
}

type Drawing<'d> = DrawingArea<SVGBackend<'d>, plotters::coord::Shift>;

fn draw_bars(
    drawing: &Drawing<'_>,
    bars: &[(String, f64)],
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    drawing.fill(&WHITE)?;
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
        let mut bar = Rectangle::new(corners, RGBColor(60, 110, 170).filled());
        bar.set_margin(3, 3, 0, 0);
        bar
    }))?;
    let ends = [(1.0, SegmentValue::Exact(0)), (1.0, SegmentValue::Exact(bars.len()))];
    chart.plotting_area().draw(&PathElement::new(ends, BLACK.mix(0.6)))?;
    Ok(())
}
