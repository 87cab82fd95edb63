import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { errors } from './errors.ts'
import { buildOpenApi, listErrorCodes } from './openapi.ts'
import { defineContract, type Route } from './route.ts'
import { Nullable } from './schemas.ts'

const Item = Type.Object({ id: Type.String(), note: Type.Optional(Type.String()) }, { $id: 'Item' })

const shop = defineContract({
  readItem: {
    method: 'GET',
    path: '/shops/:shop/items/:item',
    aliases: ['/items/:shop/:item'],
    area: 'Data Query',
    summary: 'Read an item',
    access: 'by-policy',
    shows: 'records',
    paid: true,
    params: Type.Object({ shop: Type.String({ description: 'which shop' }), item: Type.String() }),
    query: Type.Object({ depth: Type.Optional(Type.Integer()), at: Type.String() }),
    reply: Type.Object({ item: Item, others: Type.Array(Item) }),
    errors: ['RECORD_NOT_FOUND'],
  },
  addItem: {
    method: 'POST',
    path: '/shops/:shop/items/:item',
    area: 'Data Storage',
    summary: 'Add an item',
    access: 'Write',
    shows: 'records',
    status: 201,
    params: Type.Object({ shop: Type.String(), item: Type.String() }),
    body: Item,
    bodyOptional: true,
    reply: Item,
  },
})

const document = buildOpenApi(shop, { version: '4.0.0' })
const path = document.paths['/shops/{shop}/items/{item}']
const readItem = path?.get
const addItem = path?.post

describe('the OpenAPI description', () => {
  test('both methods of a path stand under one templated path', () => {
    expect(Object.keys(document.paths)).toEqual([
      '/shops/{shop}/items/{item}',
      '/items/{shop}/{item}',
    ])
    expect(readItem?.operationId).toBe('readItem')
    expect(readItem?.['x-aliases']).toEqual(['/items/{shop}/{item}'])
    expect(document.tags).toEqual([{ name: 'Data Storage' }, { name: 'Data Query' }])
  })

  test('a schema with an $id is stated once and referred to, in arrays and bodies too', () => {
    const reference = { $ref: '#/components/schemas/Item' }
    expect(document.components.schemas.Item).toEqual({
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string' }, note: { type: 'string' } },
    })
    expect(readItem?.responses['200']?.content['application/json']?.schema).toMatchObject({
      properties: { item: reference, others: { type: 'array', items: reference } },
    })
    expect(addItem?.requestBody).toEqual({
      required: false,
      content: { 'application/json': { schema: reference } },
    })
  })

  test('parameters say where they stand, whether they are required, and what they mean', () => {
    expect(readItem?.parameters).toEqual([
      {
        name: 'shop',
        in: 'path',
        required: true,
        description: 'which shop',
        schema: { type: 'string' },
      },
      { name: 'item', in: 'path', required: true, schema: { type: 'string' } },
      { name: 'depth', in: 'query', required: false, schema: { type: 'integer' } },
      { name: 'at', in: 'query', required: true, schema: { type: 'string' } },
      { $ref: '#/components/parameters/PaymentV1' },
      { $ref: '#/components/parameters/PaymentV2' },
      { $ref: '#/components/parameters/SignIn' },
      { $ref: '#/components/parameters/Balance' },
      { $ref: '#/components/parameters/IdempotencyKey' },
    ])
  })

  test('a paid route documents its 402 with the x402 body and header', () => {
    const refusal = readItem?.responses['402']
    expect(refusal?.content['application/json']?.schema).toEqual({
      $ref: '#/components/schemas/PaymentRequired',
    })
    expect(Object.keys(refusal?.headers ?? {})).toEqual([
      'PAYMENT-REQUIRED',
      'X-Request-Id',
      'RateLimit',
      'RateLimit-Policy',
    ])
    expect(addItem?.responses['402']).toBeUndefined()
  })

  test('every code stands under its status, with the sentence of the catalogue', () => {
    for (const route of Object.values<Route>(shop)) {
      const responses = path?.[route.method.toLowerCase()]?.responses ?? {}
      for (const code of listErrorCodes(route)) {
        const response = responses[String(errors[code].status)]
        expect(response?.['x-error-codes']).toContain(code)
        expect(response?.description).toContain(errors[code].text)
      }
    }
    expect(listErrorCodes(shop.readItem)).toContain('RECORD_NOT_FOUND')
    expect(listErrorCodes(shop.addItem)).toContain('PAYLOAD_TOO_LARGE')
  })

  test('a call that can cost something may find the disk full, whatever its method, and be beyond the limits of a key that pays', () => {
    const getItem: Route = { ...shop.readItem, paid: true }
    expect(listErrorCodes(getItem)).toEqual(
      expect.arrayContaining(['STORAGE_FULL', 'STORAGE_READ_ONLY', 'SPENDING_LIMIT']),
    )
    expect(listErrorCodes({ ...getItem, paid: false })).not.toContain('STORAGE_FULL')
    expect(listErrorCodes({ ...getItem, onlyByPayment: true })).not.toContain('SPENDING_LIMIT')
  })

  test('access decides the security schemes: a free choice only where a policy decides', () => {
    expect(readItem?.security[0]).toEqual({})
    expect(addItem?.security).toContainEqual({ app_key: [] })
    expect(addItem?.security).not.toContainEqual({})
  })

  test('two different schemas of one $id are refused, and so is a parameter without a schema', () => {
    const twice: Route = { ...shop.readItem, reply: Type.Object({}, { $id: 'Item' }) }
    expect(() => buildOpenApi({ a: shop.addItem, b: twice }, { version: '1' })).toThrow(
      'called Item',
    )
    const nameless: Route = { ...shop.addItem, path: '/shops/:who' }
    expect(() => buildOpenApi({ nameless }, { version: '1' })).toThrow('no schema for :who')
  })

  test('a choice of words is an enum, and no other choice is', () => {
    const words = Type.Union([Type.Literal('json'), Type.Literal('csv')], { description: 'how' })
    const reply = Type.Object({
      words,
      some: Type.Union([words, Type.Null()]),
      few: Type.Union([Type.Literal('a'), Type.Literal(1)]),
    })
    const one = buildOpenApi({ one: { ...shop.readItem, reply } }, { version: '1' })
    const schema = one.paths['/shops/{shop}/items/{item}']?.get?.responses['200']?.content
    const how = { type: 'string', enum: ['json', 'csv'], description: 'how' }
    expect(schema?.['application/json']?.schema).toMatchObject({
      properties: {
        words: how,
        some: { anyOf: [{ type: 'string', enum: ['json', 'csv'] }, { type: 'null' }] },
        few: { anyOf: [{ const: 'a' }, { const: 1 }] },
      },
    })
  })

  test('the description of a value that may be null is that of the member, and a component keeps its own', () => {
    const Shared = Type.Object({}, { $id: 'Shared', description: 'what others share' })
    const reply = Type.Object({
      size: Nullable(Type.Integer({ description: 'bytes' })),
      own: Type.Union([Type.Integer({ description: 'bytes' }), Type.Null()], {
        description: 'own',
      }),
      shared: Nullable(Shared),
    })
    const one = buildOpenApi({ one: { ...shop.readItem, reply } }, { version: '1' })
    const response = one.paths['/shops/{shop}/items/{item}']?.get?.responses['200']
    const none = { type: 'null' }
    expect(response?.content['application/json']?.schema).toMatchObject({
      properties: {
        size: { anyOf: [{ type: 'integer' }, none], description: 'bytes' },
        own: { anyOf: [{ type: 'integer', description: 'bytes' }, none], description: 'own' },
        shared: {
          anyOf: [{ $ref: '#/components/schemas/Shared' }, none],
          description: 'what others share',
        },
      },
    })
    expect(one.components.schemas.Shared).toMatchObject({ description: 'what others share' })
  })

  test('a part of an answer is bytes alone, and a refusal may have a body of its own', () => {
    const blob: Route = {
      ...shop.readItem,
      otherStatuses: [206],
      otherReplyTypes: ['*/*'],
      refusalReplies: { 503: Item },
    }
    const one = buildOpenApi({ blob }, { version: '1' }).paths['/shops/{shop}/items/{item}']?.get
    const bytes = { '*/*': { schema: { type: 'string', format: 'binary' } } }
    expect(one?.responses['206']?.content).toEqual(bytes)
    expect(one?.responses['200']?.content).toMatchObject(bytes)
    expect(one?.responses['503']?.content['application/json']?.schema).toEqual({
      anyOf: [{ $ref: '#/components/schemas/Item' }, { $ref: '#/components/schemas/Error' }],
    })
  })

  test('only headers that an operation has are components', () => {
    expect(Object.keys(document.components.parameters)).toContain('PaymentV2')
    expect(Object.keys(document.components.parameters)).not.toContain('OffsetToUpload')
    expect(Object.keys(document.components.headers)).toContain('ReceiptId')
    expect(Object.keys(document.components.headers)).not.toContain('TusVersion')
  })

  test('data inside a schema is left alone, even where it looks like a schema', () => {
    const reply = Type.Object({ $id: Type.String() }, { default: { $id: 'left' } })
    const one = buildOpenApi({ one: { ...shop.readItem, reply } }, { version: '1' })
    const operation = one.paths['/shops/{shop}/items/{item}']?.get
    expect(operation?.responses['200']?.content['application/json']?.schema).toEqual({
      type: 'object',
      required: ['$id'],
      properties: { $id: { type: 'string' } },
      default: { $id: 'left' },
    })
  })
})
