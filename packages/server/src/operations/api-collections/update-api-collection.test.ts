import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { startUpstream, type TestUpstream } from '@tollbase/testing/upstream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

let upstream: TestUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())
/** The one host that the operator allows here. */
const url = () => `http://localhost:${upstream.port}`

describe('updateApiCollection', () =>
  withService(
    (service) => {
      test('a collection of type api that has no upstream yet says so, and gets one by PUT', async () => {
        const seller = await createData(service())
        await seller.create({ name: 'empty', collection_type: 'api' })
        const path = '/api-collections/empty'
        expect((await seller.call('GET', `${path}/data`)).body.code).toBe('CONFLICT')
        const put = await seller.call('PUT', path, { upstream: { url: url() } })
        expect(put.status, put.text).toBe(200)
        expect((await seller.call('GET', `${path}/data`)).status).toBe(200)
      })
    },
    { config: { allowedUpstreams: [{ host: 'localhost', port: undefined }] } },
  ))
