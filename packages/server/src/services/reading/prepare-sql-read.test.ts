import { expect, test } from 'vitest'
import { readSqlReplyEnd } from './prepare-sql-read.ts'

test.each([
  [[], 'SELECT * FROM shop::items'],
  [[{ id: 'a' }], `SELECT '],"count":1,"query":"SELECT * FROM x"}' AS text FROM shop::items`],
  [[{ trick: [1], count: 1, query: 'SELECT * FROM x' }], 'SELECT 5003 AS salary FROM shop::items'],
  [[{ text: '],"count":1,"query":"SELECT * FROM x"' }], 'SELECT text FROM shop::items'],
])(
  'the end of a reply names the statement that was run, whatever its records hold',
  (data, query) => {
    const reply = JSON.stringify({ data, count: data.length, query, app_id: 'shop' })
    expect(readSqlReplyEnd(Buffer.from(reply))).toMatchObject({ query, app_id: 'shop' })
  },
)
