import { listRecords } from '../../packages/server/src/operations/listing/list-records.ts'
import { executeQuery } from '../../packages/server/src/operations/queries/execute-query.ts'
import { createView } from '../../packages/server/src/operations/views/create-view.ts'
import { type Shelf, samplePrice } from './letter-rules.ts'
import type { Asked } from './send-request.ts'
import { application } from './shop.ts'

/** Shelves whose quotes the answer decides, while the samples that they are made of become more. */
export type ResultShelf = 'samples' | 'surveys' | 'galleries'

const price = { per_row: String(samplePrice) }
const query = 'survey'
const view = 'gallery'

export function isOfResult(shelf: Shelf | undefined): shelf is ResultShelf {
  return shelf === 'samples' || shelf === 'surveys' || shelf === 'galleries'
}

/** Makes the predefined query of the samples, as the shop stores it when it is founded. */
export function makeSurveyDefinition() {
  return { name: query, source_collection: 'samples', price, quote: 'by_result' } as const
}

/** Makes the request by which the shop creates a live view of the samples. */
export function makeGalleryCreation(): Asked {
  const params = { app: application }
  return {
    operationId: 'createView',
    path: `/api/apps/${application}/views`,
    params,
    body: {
      name: view,
      source_collections: ['samples'],
      query: { select: ['id', 'sample'], from: 'samples' },
      refresh_mode: 'live',
      access_policy: { read: 'public', price, quote: 'by_result' },
    },
    run: (call, body) => createView(call, { params, body: body as never }),
  }
}

/** Makes the request for so many samples: of the collection, by the query, or of the view. */
export function makeResultRequest(shelf: ResultShelf, limit: number): Asked {
  if (shelf === 'surveys') {
    const params = { app: application, name: query }
    return {
      operationId: 'executeQuery',
      path: `/api/queries/${application}/${query}/data`,
      params,
      query: { limit: String(limit) },
      body: {},
      run: (call) => executeQuery(call, { params, query: { limit } }),
    }
  }
  const model = shelf === 'samples' ? 'samples' : view
  return {
    operationId: 'listRecords',
    path: '/list',
    body: { root: `${application}::${model}`, limit },
    run: (call, body) => listRecords(call, { body: body as never }),
  }
}
