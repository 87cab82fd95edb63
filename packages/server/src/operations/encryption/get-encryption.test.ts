import { createData } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getEncryption', () =>
  withService(
    (service) => {
      test('the settings are those of no encryption at first, and then name the collections and the newest data key', async () => {
        const app = await createData(service())
        await app.create({ name: 'notes' })
        const read = async () => (await app.call('GET', '/encryption')).body
        const none = await read()
        expect(none).toMatchObject({
          private_app: false,
          encrypted_collections: [],
          queryable_collections: [],
          key_epoch: 0,
          updated_at: null,
        })
        await app.call('POST', '/encryption', { action: 'add', collections: ['notes'] })
        const now = await read()
        expect(now).toMatchObject({
          ...{ private_app: false, encrypted_collections: ['notes'], key_epoch: 1 },
          algorithm: none.algorithm,
        })
        expect(Date.parse(now.updated_at)).toBeGreaterThan(0)
      })
    },
    { config: { encryptionUpdatePrice: 0n } },
  ))
