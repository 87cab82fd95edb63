import { expect, test } from 'vitest'
import { isRight } from './judging.test-support.ts'

const text = { type: 'string' }

test.each<[string, Record<string, unknown>]>([
  ['a pointer', { $defs: { a: text }, $ref: '#/$defs/a' }],
  ['a pointer with signs of its own', { $defs: { 'a/~b %': text }, $ref: '#/$defs/a~1~0b%20%25' }],
  ['a pointer with letters of all scripts', { $defs: { größe: text }, $ref: '#/$defs/größe' }],
  ['a pointer into a list', { $defs: { a: { anyOf: [true, text] } }, $ref: '#/$defs/a/anyOf/1' }],
  ['an anchor', { $defs: { a: { ...text, $anchor: 'here' } }, $ref: '#here' }],
  ['a dynamic anchor', { $defs: { a: { ...text, $dynamicAnchor: 'here' } }, $dynamicRef: '#here' }],
  ['an id of draft 7', { definitions: { a: { ...text, $id: '#here' } }, $ref: '#here' }],
  ['an id', { $defs: { a: { ...text, $id: 'https://a.example/b' } }, $ref: 'https://a.example/b' }],
  [
    'a relative id',
    { $id: 'https://a.example/b/c', $defs: { a: { ...text, $id: 'd' } }, $ref: '/b/d' },
  ],
  [
    'an anchor of a part with an id',
    { $defs: { a: { $id: 'inner', $defs: { b: { ...text, $anchor: 'b' } } } }, $ref: 'inner#b' },
  ],
  [
    'a pointer that is relative to the nearest id',
    { $defs: { a: { $id: 'inner', $defs: { b: text }, $ref: '#/$defs/b' } }, $ref: 'inner' },
  ],
  ['a URN', { $id: 'urn:example:root', $defs: { a: text }, $ref: '#/$defs/a' }],
])('a reference by %s is followed', (_, schema) => {
  expect([isRight(schema, 'text'), isRight(schema, 5)]).toEqual([true, false])
})

test('a dynamic reference means the outermost anchor of the resources that led to it', () => {
  const list = {
    $id: 'list',
    items: { $dynamicRef: '#item' },
    $defs: { any: { $dynamicAnchor: 'item' } },
  }
  const schema = {
    $id: 'https://a.example/texts',
    $ref: 'list',
    $defs: { texts: { $dynamicAnchor: 'item', type: 'string' }, list },
  }
  expect([isRight(schema, ['a']), isRight(schema, [5]), isRight(list, [5])]).toEqual([
    true,
    false,
    true,
  ])
})
