import { createData, type Data } from './data.ts'
import type { Json, TestService } from './service.ts'

/** Creates an application whose chain anyone may read, because it has public data. */
export async function createOpenData(service: TestService): Promise<Data> {
  const app = await createData(service)
  await app.create({ name: 'notes', access_policy: 'public' })
  return app
}

/** Reads the chain of an application without a key. */
export async function readChain(service: TestService, app: Data, path: string): Promise<Json> {
  return (await service.request('GET', `/api/apps/${app.appId}/chain${path}`)).body
}
