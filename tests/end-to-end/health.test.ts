import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

test('the service says that it is there', async () => {
  expect((await service.request('GET', '/')).status).toBe(200)
  const app = await service.createApp()
  const { status } = await service.request('GET', `/api/apps/${app.appId}/keys`, { headers: app.headers })
  expect(status).toBe(200)
})
