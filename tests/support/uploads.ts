import type { Blobs } from './blobs.ts'
import type { TestReply, TestService } from './service.ts'

/** The type of the bytes that a resumable upload brings. */
export const chunkType = 'application/offset+octet-stream'

/** Makes the calls that tests of resumable uploads need, each with the application's key. */
export function makeUploadCalls(service: () => TestService) {
  return {
    /** Begins an upload of so many bytes, perhaps with further headers; gives its path. */
    begin: async (app: Blobs, collection: string, what: number | readonly [number, object]) => {
      const [length, more] = typeof what === 'number' ? [what, {}] : what
      const headers = { ...app.data.headers, 'upload-length': String(length), ...more }
      const path = `/api/apps/${app.appId}/blobs/${collection}/uploads`
      const begun = await service().request('POST', path, { headers })
      return { ...begun, path: begun.headers.get('location') ?? '' }
    },
    /** Sends bytes from an offset on. */
    patch: (
      app: Blobs,
      path: string,
      [offset, raw]: readonly [number, Uint8Array | string],
    ): Promise<TestReply> =>
      service().request('PATCH', path, {
        raw,
        headers: {
          ...app.data.headers,
          ...{ 'content-type': chunkType, 'upload-offset': String(offset) },
        },
      }),
    /** Asks where to go on, as clients of tus do. */
    head: async (app: Blobs, path: string) => {
      const { status, headers } = await service().request('HEAD', path, {
        headers: app.data.headers,
      })
      return { status, offset: Number(headers.get('upload-offset')) }
    },
    look: (app: Blobs, path: string): Promise<TestReply> =>
      service().request('GET', path, { headers: app.data.headers }),
  }
}
