import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { expect, test } from 'vitest'

withService((service) => {
  test('a retention is set, shown, lengthened and taken back, and a shorter one is in force an hour later', async () => {
    const app = await createData(service())
    await app.create({ name: 'c' })
    const path = '/collections/c/retention'
    const read = async () => (await app.call('GET', path)).body
    expect(await read()).toMatchObject({ retention_days: null, tier: 'permanent', free_days: 30 })
    const set = async (retention_days: number | null) => {
      const reply = await app.call('POST', path, { retention_days })
      expect(reply.status, reply.text).toBe(200)
      return reply.body
    }
    const inAnHour = () => service().world.now() + 3600 * 1000
    const first = await set(30)
    expect(first).toMatchObject({ success: true, retention_days: 30, tier: 'free' })
    expect(Math.abs(Date.parse(first.effective_at) - inAnHour())).toBeLessThan(60_000)
    // A longer one spares at once what it keeps, and until its time what the first one would not have kept.
    const longer = await set(60)
    expect(longer).toMatchObject({ tier: 'extended', effective_at: first.effective_at })
    service().world.advance(2 * 3600 * 1000)
    const shorter = await set(7)
    expect(Math.abs(Date.parse(shorter.effective_at) - inAnHour())).toBeLessThan(60_000)
    expect((await set(7)).effective_at).toBe(shorter.effective_at)
    const { success: _, message: _message, ...settings } = shorter
    const { expires_before, ...told } = settings
    expect(await read()).toMatchObject(told)
    expect(Date.parse(expires_before)).toBeLessThan(service().world.now() - 6 * 24 * 3600 * 1000)
    expect((await set(null)).effective_at).toBeNull()
    expect(await read()).toMatchObject({ retention_days: null, expires_before: null })
  })

  test('days that are none, too many or missing are refused, and so are keys without Admin', async () => {
    const app = await createData(service())
    await app.create({ name: 'c' })
    await app.create({ name: 'proxy', collection_type: 'api' })
    const path = '/collections/c/retention'
    for (const body of [
      {},
      { retention_days: -1 },
      { retention_days: 1.5 },
      { retention_days: 36_501 },
    ])
      expect((await app.call('POST', path, body)).status).toBe(400)
    expect((await app.call('POST', path, { retention_days: 36_500 })).status).toBe(200)
    const none = { retention_days: 1 }
    expect((await app.call('POST', '/collections/nothing/retention', none)).status).toBe(404)
    expect((await app.call('POST', '/collections/proxy/retention', none)).status).toBe(409)
    const made = await app.call('POST', '/keys', { permissions: ['Read', 'Write'] })
    const headers = { 'x-app-key': made.body.key }
    const at = `/api/apps/${app.appId}${path}`
    expect((await service().request('POST', at, { body: none, headers })).status).toBe(403)
    expect((await service().request('GET', at, { headers })).status).toBe(200)
    expect((await service().request('GET', at)).status).toBe(401)
  })
})
