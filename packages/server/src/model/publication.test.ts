import { expect, test } from 'vitest'
import { emptyCatalog } from './catalog.ts'
import { isPublished } from './publication.ts'

const collection = { id: 'col_1', name: 'weather' }
const shows = (kind: string, body: object | undefined) =>
  isPublished(emptyCatalog, 'plaintext', {
    header: { type: 'definition', kind, id: 'x' },
    body: body === undefined ? '' : JSON.stringify(body),
  })

test.each<[string, object | undefined, boolean]>([
  ['collection', collection, true],
  ['collection', undefined, true],
  ['collection', { ...collection, api: { url: 'https://example.com/?key=secret' } }, false],
  ['view', { sql: 'SELECT 1' }, true],
  ['migration', { errors: ['ann@example.com: /age must be a number'] }, false],
  ['data_set', { entries: ['ann@example.com'] }, false],
  ['of a later version', {}, false],
  ['constructor', {}, false],
])('the definition of a %s, %j, is published: %s', (kind, body, is) => {
  expect(shows(kind, body)).toBe(is)
})
