import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'
import type { S3Bucket } from '../../packages/server/src/blobs/s3-client.ts'

export type S3Server = {
  readonly bucket: S3Bucket
  /** Where the server has its objects. */
  readonly folder: string
  readonly stop: () => Promise<void>
  /** Starts it again at the same port. */
  readonly restart: () => Promise<void>
  readonly end: () => Promise<void>
}

/** Starts a store that speaks the S3 protocol, with one bucket. It takes any signature. */
export async function startS3Server(prefix = 'prod/'): Promise<S3Server> {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-s3-'))
  const start = async (port: number) => {
    const server = new S3rver({
      ...{ address: '127.0.0.1', port, directory: folder, silent: true },
      configureBuckets: [{ name: 'blobs-here', configs: [] }],
    })
    return { server, port: (await server.run()).port }
  }
  let running = await start(0)
  const { port } = running
  return {
    folder,
    bucket: {
      ...{
        endpoint: `http://127.0.0.1:${port}`,
        region: 'us-east-1',
        bucket: 'blobs-here',
        prefix,
      },
      ...{ isPathStyle: true, accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    },
    stop: () => running.server.close(),
    restart: async () => {
      running = await start(port)
    },
    end: async () => {
      await running.server.close().catch(() => undefined)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
