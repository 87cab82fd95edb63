import { interfaceVersion } from '@tollbase/contract/contract'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('postInfo', () =>
  withService((service) => {
    test('the service tells its versions, its areas and since when it runs', async () => {
      const before = service().world.now()
      const { status, body } = await service().request('POST', '/info', { body: {} })
      expect(status).toBe(200)
      expect(body).toMatchObject({ name: 'tollbase', interface_version: interfaceVersion })
      expect(body.areas).toContain('Collections')
      expect(Date.parse(body.started_at)).toBeLessThanOrEqual(before)
    })

    test('the reply is the same to everybody, and names no application', async () => {
      const app = await service().createApp()
      const info = (headers: Readonly<Record<string, string>>) =>
        service().request('POST', '/info', { body: {}, headers })
      const { text } = await info({})
      expect((await info(app.headers)).text).toBe(text)
      expect((await info(service().operator)).text).toBe(text)
      expect(text).not.toContain(app.appId)
    })
  }))
