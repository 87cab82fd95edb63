import { describe, expect, it } from 'vitest'
import { parseSql } from '../sql/parse-sql.ts'
import { testNow } from '../sql/test-sql.test-support.ts'
import { findUnstatedModel } from './stated-keys.ts'

/** `s` must state k, or a range of t; `h` must state k, of which no range counts; `free` nothing. */
const keys = new Map([
  [
    'app::s',
    [
      { field: 'k', ranges: false },
      { field: 't', ranges: true },
    ],
  ],
  ['app::h', [{ field: 'k', ranges: false }]],
])

async function unstated(text: string): Promise<string | undefined> {
  const query = await parseSql(text, {
    now: testNow,
    parameters: {},
    typesOf: (model) => (model === 'app::h' ? new Map([['k', 'text']]) : undefined),
  })
  return findUnstatedModel(query, (model) => keys.get(model))
}

describe('statements over a source that needs a stated key', () => {
  it.each([
    "SELECT * FROM app::s WHERE k = 'x'",
    "SELECT * FROM app::s WHERE 'x' = k",
    "SELECT * FROM app::h WHERE k = 'x' AND n > 1",
    "SELECT * FROM app::s WHERE n = 1 AND (k IN ('x', 'y') AND m = 2)",
    "SELECT * FROM app::s WHERE t >= '2026' LIMIT 3",
    "SELECT * FROM app::s WHERE t BETWEEN '2026-01' AND '2026-02'",
    "SELECT * FROM app::s WHERE t LIKE '2026%'",
    "SELECT * FROM app::s WHERE k = 'x' OR k = 'y'",
    "SELECT count(*) AS n FROM app::s WHERE k = 'x' GROUP BY m",
    "SELECT s.k FROM app::s s JOIN app::h h ON h.k = s.m WHERE s.k = 'x'",
    "SELECT s.k FROM app::s s, app::h h WHERE h.k = s.m AND s.k = 'x'",
    'SELECT f.a FROM app::free f JOIN app::s s ON s.k = f.a',
    'SELECT f.a FROM app::free f LEFT JOIN app::s s ON s.k = f.a',
    "SELECT f.a FROM app::free f LEFT JOIN app::s s ON true WHERE s.k = 'x'",
    'SELECT f.a FROM app::s s RIGHT JOIN app::free f ON s.k = f.a',
    'SELECT f.a FROM app::free f WHERE EXISTS (SELECT 1 FROM app::s WHERE app::s.k = f.a)',
    'SELECT * FROM app::s WHERE k IN (SELECT a FROM app::free)',
    "SELECT k FROM app::s WHERE k = 'x' UNION SELECT k FROM app::h WHERE k = 'y'",
    "WITH w AS (SELECT * FROM app::s WHERE k = 'x') SELECT w.k FROM w JOIN app::h h ON h.k = w.k",
    'SELECT f.a FROM app::free f, LATERAL (SELECT s.n FROM app::s s WHERE s.k = f.a) t',
    "SELECT s.n, u.k FROM app::s s, LATERAL (SELECT h.k FROM app::h h WHERE h.k = s.m) u WHERE s.k = 'x'",
    'SELECT s.n FROM app::s s, generate_series(1, 3) n WHERE s.k = n',
    'WITH RECURSIVE t AS (SELECT f.a FROM app::free f UNION SELECT s.n FROM t JOIN app::s s ON s.k = t.a) SELECT a FROM t',
    'SELECT s.n FROM app::free f, unnest(f.a) e, app::s s WHERE s.k = e',
    'SELECT a FROM app::free',
  ])('a statement states the key: %s', async (text) => {
    expect(await unstated(text)).toBeUndefined()
  })

  it.each([
    ['SELECT * FROM app::s', 'app::s'],
    ['SELECT * FROM app::s WHERE n = 1', 'app::s'],
    ["SELECT * FROM app::s WHERE k <> 'x'", 'app::s'],
    ["SELECT * FROM app::s WHERE NOT k = 'x'", 'app::s'],
    ["SELECT * FROM app::s WHERE k > 'x'", 'app::s'],
    ["SELECT * FROM app::h WHERE k LIKE 'x%'", 'app::h'],
    ["SELECT * FROM app::s WHERE t LIKE '%x'", 'app::s'],
    ["SELECT * FROM app::s WHERE k = 'x' OR n = 1", 'app::s'],
    ["SELECT * FROM app::s WHERE k = 'x' OR t = 'y'", 'app::s'],
    ['SELECT * FROM app::s WHERE k = n', 'app::s'],
    ["SELECT * FROM app::s WHERE lower(k) = 'x'", 'app::s'],
    ['SELECT * FROM app::s WHERE k IS NULL', 'app::s'],
    ["SELECT m FROM app::s GROUP BY m HAVING count(k = 'x') > 1", 'app::s'],
    ['SELECT s.k FROM app::s s JOIN app::h h ON h.k = s.k', 'app::s'],
    ["SELECT s.k FROM app::s s LEFT JOIN app::free f ON s.k = 'x'", 'app::s'],
    ["SELECT s.k FROM app::free f RIGHT JOIN app::s s ON s.k = 'x'", 'app::s'],
    ["SELECT s.k FROM app::s s FULL JOIN app::free f ON s.k = f.a AND s.k = 'x'", 'app::s'],
    ["SELECT a.k FROM app::s a, app::s b WHERE a.k = 'x'", 'app::s'],
    ["SELECT * FROM (SELECT * FROM app::s) q WHERE q.k = 'x'", 'app::s'],
    ["WITH w AS (SELECT * FROM app::s) SELECT * FROM w WHERE w.k = 'x'", 'app::s'],
    ["SELECT k FROM app::s WHERE k = 'x' UNION SELECT k FROM app::h", 'app::h'],
    ['SELECT (SELECT count(*) FROM app::h) AS n FROM app::free', 'app::h'],
    ['SELECT a FROM app::free WHERE EXISTS (SELECT 1 FROM app::h)', 'app::h'],
    ['SELECT n FROM app::s s WHERE s.k = (SELECT s.k)', 'app::s'],
    [
      'WITH RECURSIVE t AS (SELECT s.n FROM app::s s UNION SELECT n + 1 FROM t) SELECT n FROM t',
      'app::s',
    ],
    [
      'WITH RECURSIVE t AS (SELECT f.a FROM app::free f UNION SELECT s.n FROM t JOIN app::s s ON s.n = t.a) SELECT a FROM t',
      'app::s',
    ],
    ['SELECT n FROM app::s s WHERE s.k IN (SELECT s.k FROM app::free f)', 'app::s'],
    ['SELECT s.n FROM app::s s, unnest(s.tags) e WHERE s.k = e', 'app::s'],
    ['SELECT s.n FROM app::s s, LATERAL (SELECT s.k) t WHERE s.k = t.k', 'app::s'],
    [
      'SELECT s.n FROM app::s s, LATERAL (SELECT h.k FROM app::h h WHERE h.k = s.k) t WHERE s.k = t.k',
      'app::s',
    ],
    ['SELECT f.a FROM app::free f, LATERAL (SELECT h.k FROM app::h h) t', 'app::h'],
    ['SELECT a FROM app::free WHERE a IN (SELECT k FROM app::h WHERE n = 1)', 'app::h'],
  ])('a statement does not state the key: %s', async (text, model) => {
    expect(await unstated(text)).toBe(model)
  })
})
