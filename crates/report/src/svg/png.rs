//! Pictures as PNG: the same canvas as the SVG, in the letters of a font that comes along, so that a picture is the same on a
//! machine without fonts.

use super::canvas::{Anchor, Canvas, INK, Mark, Outline, PAGE_INK, Shape, Words};
use tiny_skia::{Color, FillRule, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, OutlineBuilder};

/// How many pixels a point has, for print.
const PIXELS: f32 = 2.5;

/// `canvas` as PNG; `None` when the font that comes along cannot be read, which a test rules out.
pub(crate) fn png(canvas: &Canvas) -> Option<Vec<u8>> {
    let font = Face::parse(dejavu::sans::regular(), 0).ok()?;
    let mut image =
        Pixmap::new((canvas.width as f32 * PIXELS) as u32, (canvas.height as f32 * PIXELS) as u32)?;
    image.fill(Color::WHITE);
    draw(&mut image, &canvas.marks, &font, canvas.letters);
    image.encode_png().ok()
}

/// Draws `marks`; `letters` is the height of letters where words say nothing else.
fn draw(image: &mut Pixmap, marks: &[Mark], font: &Face<'_>, letters: f64) {
    for mark in marks {
        match mark {
            Mark::Shape(shape) => draw_shape(image, shape),
            Mark::Words(words) => draw_words(image, words, font, letters),
            Mark::Group(_, marks) => draw(image, marks, font, letters),
        }
    }
}

fn draw_shape(image: &mut Pixmap, shape: &Shape) {
    let mut path = PathBuilder::new();
    let mut through = |points: &[(f64, f64)], closed: bool| {
        for (at, (x, y)) in points.iter().enumerate() {
            let (x, y) = (*x as f32, *y as f32);
            if at == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
        }
        if closed {
            path.close();
        }
    };
    match &shape.outline {
        Outline::Rectangle { at: (x, y), width, height } => {
            through(&[(*x, *y), (x + width, *y), (x + width, y + height), (*x, y + height)], true);
        }
        Outline::Polygon(corners) => through(corners, true),
        Outline::Lines(lines) => lines.iter().for_each(|points| through(points, false)),
    }
    let Some(path) = path.finish() else { return };
    let scale = Transform::from_scale(PIXELS, PIXELS);
    if let Some(fill) = shape.fill {
        image.fill_path(&path, &paint(fill, 1.0), FillRule::Winding, scale, None);
    }
    if let Some(stroke) = shape.stroke {
        let dash = StrokeDash::new(stroke.dash.to_vec(), 0.0);
        let line = Stroke { width: stroke.width as f32, dash, ..Stroke::default() };
        image.stroke_path(&path, &paint(stroke.color, stroke.opacity), &line, scale, None);
    }
}

fn draw_words(image: &mut Pixmap, words: &Words, font: &Face<'_>, letters: f64) {
    let (outline, length) = outline(font, &words.text, words.letters.unwrap_or(letters));
    let Some(outline) = outline else { return };
    let before = match words.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => length / 2.0,
        Anchor::End => length,
    };
    let turned = if words.upwards { -90.0 } else { 0.0 };
    let at = Transform::from_scale(PIXELS, PIXELS).pre_translate(words.at.0 as f32, words.at.1 as f32);
    let at = at.pre_rotate(turned).pre_translate(-before, 0.0);
    let color = words.color.unwrap_or(INK);
    // A second font would be large: letters are made bold by a line around them.
    let bold = words.bold.then_some((color, 0.6));
    for (color, width) in words.rim.into_iter().chain(bold) {
        let line = Stroke { width: width as f32, line_join: LineJoin::Round, ..Stroke::default() };
        image.stroke_path(&outline, &paint(color, 1.0), &line, at, None);
    }
    image.fill_path(&outline, &paint(color, 1.0), FillRule::Winding, at, None);
}

/// `color`, which is a name or `#rrggbb`.
fn paint(color: &str, opacity: f64) -> Paint<'static> {
    let color = match color {
        PAGE_INK => INK,
        "white" => "#ffffff",
        "black" => "#000000",
        other => other,
    };
    let channel = |at: usize| color.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
    let [red, green, blue] = [1, 3, 5].map(|at| channel(at).unwrap_or_default());
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (opacity * 255.0) as u8);
    paint
}

/// The outline of `text` from the origin on, and how long it is. What the font lacks is drawn as its box for that.
fn outline(font: &Face<'_>, text: &str, letters: f64) -> (Option<tiny_skia::Path>, f32) {
    let scale = letters as f32 / f32::from(font.units_per_em());
    let mut letters = Letters { path: PathBuilder::new(), scale, x: 0.0 };
    for character in text.chars() {
        let glyph = font.glyph_index(character).unwrap_or_default();
        font.outline_glyph(glyph, &mut letters);
        letters.x += f32::from(font.glyph_hor_advance(glyph).unwrap_or_default()) * scale;
    }
    (letters.path.finish(), letters.x)
}
/// Takes the outlines of glyphs, one behind the other. The font's y axis points up, the picture's down.
struct Letters {
    path: PathBuilder,
    scale: f32,
    x: f32,
}

impl Letters {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
