// Hand-written. Pictures of environments: shapes in colours, and boards of characters. A picture needs no C library, and is the same on
// every machine.
//
//	static void draw(void *state, uint32_t i, rl_picture *p)
//	{
//	    const Walk *walk = (const Walk *)state + i;
//	    rl_draw_rect(p, 0, 0, 100, 20, 0x202020);
//	    rl_draw_disc(p, (float)walk->position, 10, 5, 0xffcc00);
//	}
//
//	RL_ENV(Walk, …, .picture_width = 100, .picture_height = 20, .picture_fps = 30, …, .draw = draw)
//
// Places are in pixels from the upper left corner, with fractions; colours are 0xRRGGBB. What lies outside is cut off.
#ifndef RL_DRAW_H
#define RL_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RL_DRAW static __attribute__((unused))

// rl_picture is a picture to draw on: height rows of width pixels of three bytes. It is black at first.
typedef struct rl_picture {
    uint8_t *rgb;
    int32_t width, height;
} rl_picture;

// rl_point is a place in a picture.
typedef struct rl_point {
    float x, y;
} rl_point;

// rl_draw_pixel is the pixel nearest to a place on one axis, from 0 to most.
RL_DRAW int32_t rl_draw_pixel(float at, int32_t most)
{
    return !(at > 0) ? 0 : at >= (float)most ? most : (int32_t)(at + 0.5f);
}

// rl_draw_span fills the pixels of a row from left to right.
RL_DRAW void rl_draw_span(rl_picture *p, int32_t row, float left, float right, uint32_t colour)
{
    int32_t from = rl_draw_pixel(left, p->width), end = rl_draw_pixel(right, p->width);
    uint8_t *at = p->rgb + ((size_t)row * (size_t)p->width + (size_t)from) * 3;
    for (; from < end; from++, at += 3) at[0] = (uint8_t)(colour >> 16), at[1] = (uint8_t)(colour >> 8), at[2] = (uint8_t)colour;
}

// rl_draw_rect fills a rectangle.
RL_DRAW void rl_draw_rect(rl_picture *p, float x, float y, float width, float height, uint32_t colour)
{
    int32_t end = rl_draw_pixel(y + height, p->height);
    for (int32_t row = rl_draw_pixel(y, p->height); row < end; row++) rl_draw_span(p, row, x, x + width, colour);
}

// rl_draw_polygon fills a convex polygon.
RL_DRAW void rl_draw_polygon(rl_picture *p, const rl_point *points, uint32_t n, uint32_t colour)
{
    for (int32_t row = 0; row < p->height; row++) {
        float middle = (float)row + 0.5f, left = (float)p->width, right = 0;
        bool met = false;
        for (uint32_t k = 0; k < n; k++) {
            rl_point a = points[k], b = points[k + 1 < n ? k + 1 : 0];
            if ((a.y <= middle) == (b.y <= middle)) continue; // the side does not cross the row
            float x = a.x + (middle - a.y) / (b.y - a.y) * (b.x - a.x);
            left = !met || x < left ? x : left;
            right = !met || x > right ? x : right;
            met = true;
        }
        if (met) rl_draw_span(p, row, left, right, colour);
    }
}

// rl_draw_line draws a line of that thickness between two points.
RL_DRAW void rl_draw_line(rl_picture *p, rl_point a, rl_point b, float thick, uint32_t colour)
{
    float dx = b.x - a.x, dy = b.y - a.y, length = __builtin_sqrtf(dx * dx + dy * dy);
    if (!(length > 0)) return;
    float x = -dy / length * thick / 2, y = dx / length * thick / 2;
    rl_point sides[] = {{a.x + x, a.y + y}, {b.x + x, b.y + y}, {b.x - x, b.y - y}, {a.x - x, a.y - y}};
    rl_draw_polygon(p, sides, 4, colour);
}

// rl_draw_disc fills a disc around (x, y).
RL_DRAW void rl_draw_disc(rl_picture *p, float x, float y, float radius, uint32_t colour)
{
    int32_t end = rl_draw_pixel(y + radius, p->height);
    for (int32_t row = rl_draw_pixel(y - radius, p->height); row < end; row++) {
        float off = (float)row + 0.5f - y, square = radius * radius - off * off;
        if (square > 0) rl_draw_span(p, row, x - __builtin_sqrtf(square), x + __builtin_sqrtf(square), colour);
    }
}

// rl_put_board writes rows of characters as lines, where there is room, and returns the length needed: a whole render for text.
RL_DRAW uint32_t rl_put_board(const char *cells, uint32_t rows, uint32_t columns, char *to, uint32_t cap)
{
    uint32_t need = rows * (columns + 1);
    for (uint32_t row = 0; cap >= need && row < rows; row++) {
        __builtin_memcpy(to, cells + (size_t)row * columns, columns);
        to[columns] = '\n';
        to += columns + 1;
    }
    return need;
}

#ifdef __cplusplus
}
#endif

#endif
