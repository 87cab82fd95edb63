import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

const text = (length: number) => 'x'.repeat(length)
const day = 24 * 3600

type Probe = {
  /** Makes a request that has that much of what the limit bounds. */
  readonly ask: (data: Data, amount: number) => Promise<TestReply>
  readonly field: string
}

/** Limits of single fields; those of whole calls, of queries and of storage are tested where they live. */
const probes: Readonly<Record<string, Probe & { readonly max: number }>> = {
  nameCharsMax: {
    max: limits.nameCharsMax,
    ask: (data, amount) => data.call('PATCH', '', { name: text(amount) }),
    field: '/name',
  },
  'nameCharsMax of a key': {
    max: limits.nameCharsMax,
    ask: (data, amount) => data.call('POST', '/keys', { name: text(amount) }),
    field: '/name',
  },
  'nameCharsMax of a namespace': {
    max: limits.nameCharsMax,
    ask: (data, amount) => data.create({ name: `n${amount}`, namespace: text(amount) }),
    field: '/namespace',
  },
  descriptionCharsMax: {
    max: limits.descriptionCharsMax,
    ask: (data, amount) => data.call('PATCH', '', { description: text(amount) }),
    field: '/description',
  },
  'the name of a collection': {
    max: 63,
    ask: (data, amount) => data.create({ name: text(amount) }),
    field: '/name',
  },
  fieldPathCharsMax: {
    max: limits.fieldPathCharsMax,
    ask: (data, amount) =>
      data.call('POST', '/indexes', { collection: 'c', field_name: text(amount) }),
    field: '/field_name',
  },
  'fieldPathCharsMax of a primary column': {
    max: limits.fieldPathCharsMax,
    ask: (data, amount) => data.create({ name: `p${amount}`, primary_column: text(amount) }),
    field: '/primary_column',
  },
  fieldPathDepthMax: {
    max: limits.fieldPathDepthMax,
    ask: (data, amount) =>
      data.call('POST', '/indexes', {
        collection: 'c',
        field_name: Array.from({ length: amount }, () => 'a').join('.'),
      }),
    field: '/field_name',
  },
  amountAtomicMax: {
    max: Number(limits.amountAtomicMax),
    ask: async (data, amount) => {
      await data.create({ name: 'sold' })
      const target = { collection: 'sold' }
      const rule = { target, operation: 'read', model: 'per_access', amount }
      return data.call('PUT', '/pricing', { rules: [rule] })
    },
    field: '/rules/0/amount',
  },
  keyOverlapSecondsMax: {
    max: limits.keyOverlapSecondsMax,
    ask: async (data, amount) => {
      const { body } = await data.call('POST', '/keys', {})
      return data.call('POST', `/keys/${body.key_hash}/rotate`, { overlap_seconds: amount })
    },
    field: '/overlap_seconds',
  },
  'the rules of an application': {
    max: 1000,
    ask: (data, amount) =>
      data.call('PUT', '/pricing', {
        rules: Array.from({ length: amount }, () => ({
          target: { collection: 'nothing' },
          operation: 'read',
          model: 'per_access',
          amount: '1',
        })),
      }),
    field: '/rules',
  },
  'the limit of tasks': {
    max: 1000,
    ask: (data, amount) => data.call('GET', `/tasks?limit=${amount}`),
    field: '/query/limit',
  },
}

describe('limits of single fields', () => {
  withService((service) => {
    test.each(Object.entries(probes))(
      '%s is taken at its limit, and one more is refused and named',
      async (_, probe) => {
        const data = await createData(service())
        const at = await probe.ask(data, probe.max)
        // A request that was refused as not found or not allowed was at least parsed.
        expect(at.body?.code, at.text.slice(0, 300)).not.toBe('VALIDATION_FAILED')
        const past = await probe.ask(data, probe.max + 1)
        expect(past.status, past.text.slice(0, 300)).toBe(400)
        expect(past.body.details.field).toBe(probe.field)
      },
    )

    test('previewRowsMax: a policy of more rows is refused', async () => {
      const data = await createData(service())
      const policy = (rows: number) => ({ read: 'public', preview: { rows } })
      const at = await data.create({ name: 'at', access_policy: policy(limits.previewRowsMax) })
      expect(at.body._warning).toBeUndefined()
      const past = await data.create({
        name: 'past',
        access_policy: policy(limits.previewRowsMax + 1),
      })
      expect(past.status).toBe(400)
      expect(past.body.details.field).toBe('/access_policy/preview/rows')
    })

    test('keysPerApplicationMax: the last key is made, one more is 409, and revoking makes room', async () => {
      const data = await createData(service())
      const made = await Promise.all(
        Array.from({ length: limits.keysPerApplicationMax - 1 }, () =>
          data.call('POST', '/keys', {}),
        ),
      )
      expect(made.every(({ status }) => status === 201)).toBe(true)
      expect((await data.call('POST', '/keys', {})).body.code).toBe('CONFLICT')
      await data.call('POST', `/keys/${made[0]?.body.key_hash}/revoke`, {})
      expect((await data.call('POST', '/keys', {})).status).toBe(201)
    })

    test('signedRequestWindowSeconds and the end of a key count a day as a day, not as a second', async () => {
      const data = await createData(service())
      const expires_at = new Date(service().world.now() + day * 1000).toISOString()
      const { body } = await data.call('POST', '/keys', { permissions: ['Read'], expires_at })
      const headers = { 'x-app-key': body.key }
      const ask = () => service().request('GET', `/api/apps/${data.appId}/stats`, { headers })
      expect((await ask()).status).toBe(200)
      service().world.advance(day * 1000 + 1)
      expect((await ask()).status).toBe(401)
    })

    test.each<[string, (data: Data) => Promise<TestReply>, string]>([
      ['a number for a name', (data) => data.create({ name: 7 }), '/name'],
      ['an object for a name', (data) => data.create({ name: {} }), '/name'],
      ['a list for a body', (data) => data.create([]), ''],
      ['records that are no list', (data) => data.store('c', { id: 1 } as never), '/data'],
      ['no records', (data) => data.store('c', []), '/data'],
      [
        'a root without a collection',
        (data) => data.call('POST', '/../../../list', { root: 'x' }),
        '/root',
      ],
      [
        'an unknown field of an application',
        (data) => data.call('PATCH', '', { balance: '1' }),
        '',
      ],
      ['an owner by mass assignment', (data) => data.call('PATCH', '', { app_id: 'other' }), ''],
      [
        'a permission that is none',
        (data) => data.call('POST', '/keys', { permissions: ['Root'] }),
        '/permissions/0',
      ],
      [
        'a permission twice',
        (data) => data.call('POST', '/keys', { permissions: ['Read', 'Read'] }),
        '/permissions',
      ],
      ['no permission', (data) => data.call('POST', '/keys', { permissions: [] }), '/permissions'],
      [
        'an amount with a fraction',
        (data) => data.call('POST', '/keys', { pay_limits: { spend_allowance: 1.5 } }),
        '/pay_limits/spend_allowance',
      ],
      [
        'a negative amount',
        (data) => data.call('POST', '/keys', { pay_limits: { spend_allowance: '-1' } }),
        '/pay_limits/spend_allowance',
      ],
      [
        'an address that is none',
        (data) => data.call('PATCH', '', { owner_address: '0x1' }),
        '/owner_address',
      ],
      ['a query that is no number', (data) => data.call('GET', '/tasks?limit=1e3'), '/query/limit'],
      [
        'a height that is no number',
        (data) => data.call('GET', '/chain/blocks/0x1'),
        '/params/height',
      ],
    ])('%s is refused with 400, and the field is named', async (_, ask, field) => {
      const reply = await ask(await createData(service()))
      expect(reply.status, reply.text).toBe(400)
      expect(reply.body.details?.field ?? '').toContain(field)
    })
  })
})
