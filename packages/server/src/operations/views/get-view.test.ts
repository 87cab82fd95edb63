import { withService } from '@tollbase/testing/per-engine'
import { createSeller, createView, perMarket } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'

describe('getView', () =>
  withService((service) => {
    test('an empty view has height 0, sequence 0 and the time of its creation', async () => {
      const app = await createSeller(service())
      await app.create({ name: 'nothing' })
      const source_collections = ['nothing']
      await createView(app, { name: 'empty', source_collections, query: perMarket })
      const { body: view } = await app.call('GET', '/views/empty')
      expect(view.refresh_metadata).toMatchObject({
        last_processed_block_height: 0,
        last_processed_sequence: 0,
        last_processed_timestamp: view.created_at,
        last_processed_tx_id: null,
        total_source_records: 0,
        total_view_records: 0,
      })
      expect((await app.list('empty')).body.records).toEqual([])
    })
  }))
