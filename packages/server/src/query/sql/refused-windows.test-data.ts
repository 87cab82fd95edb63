/** Statements with windows, and with ranks that are none, that are refused, each with what the error must name. */
export const refusedWindows: readonly (readonly [string, string])[] = [
  [
    'SELECT count(*) OVER (w PARTITION BY status) AS n FROM app::c WINDOW w AS (ORDER BY id)',
    'PARTITION BY in a window that goes on from w',
  ],
  [
    'SELECT count(*) OVER (w ORDER BY id) AS n FROM app::c WINDOW w AS (ORDER BY id)',
    'ORDER BY in a window that goes on from w, which has one',
  ],
  [
    'SELECT count(*) OVER v AS n FROM app::c WINDOW w AS (ORDER BY id ROWS 1 PRECEDING), v AS (w)',
    'a window that goes on from w, which has a frame',
  ],
  [
    'SELECT count(*) OVER w AS n FROM app::c WINDOW w AS (v), v AS (ORDER BY id)',
    'the window v, which is not defined',
  ],
  [
    'SELECT count(*) OVER w AS n FROM app::c WINDOW w AS (), w AS (ORDER BY id)',
    'two windows of the name w',
  ],
  [
    'SELECT rank(5) WITHIN GROUP (ORDER BY id) AS n FROM app::c',
    'rank WITHIN GROUP, which is not possible; write count(*) FILTER (WHERE a < n) + 1',
  ],
]
