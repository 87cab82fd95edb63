import type { TestApp, TestService } from './service.ts'

/** Makes the calls that tests of keys need. */
export function makeKeyCalls(service: TestService) {
  const post = (path: string, headers: Readonly<Record<string, string>>, body?: object) =>
    service.request('POST', path, { body, headers })
  const list = async (app: TestApp) =>
    (await service.request('GET', `/api/apps/${app.appId}/keys`, { headers: app.headers })).body
      .keys
  return {
    post,
    create: (app: TestApp, body?: object) => post(`/api/apps/${app.appId}/keys`, app.headers, body),
    list,
    /** The list's entry of the key. */
    find: async (app: TestApp, hash: string) =>
      (await list(app)).find((one: { key_hash: string }) => one.key_hash === hash),
    /** 200 while the key lives: any key of the application may read its stats with Read. */
    use: async (app: TestApp, key: string) => {
      const headers = { 'x-app-key': key }
      return (await service.request('GET', `/api/apps/${app.appId}/stats`, { headers })).status
    },
  }
}

/** Keeps all changes of applications and keys waiting, until the returned function is called. */
export function holdChanges(service: TestService): () => Promise<void> {
  const ends: (() => void)[] = []
  const end = new Promise<void>((resolve) => ends.push(resolve))
  const held = service.running.service.tenants.system.definitions.run(() => end)
  return () => {
    for (const release of ends) release()
    return held
  }
}
