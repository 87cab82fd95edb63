import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import { AppParams, extendAppParams, Name, Nullable, StringEnum, Success, Time } from './schemas.ts'

const Kind = StringEnum(['values', 'cidr', 'ip_country'])

const dataSet = {
  name: Type.String(),
  kind: Kind,
  count: Type.Integer({ description: 'values, or ranges of addresses that do not touch' }),
  public: Type.Boolean({ description: 'whether queries of others may look into it' }),
  provider: StringEnum(['application', 'operator']),
  updated_at: Nullable(Time),
}

export const DataSet = Type.Object(dataSet, {
  $id: 'DataSet',
  description: 'A named set that inDataset and inCountry look values up in',
})

const NamedParams = extendAppParams({ name: Name })

export const dataSets = defineContract({
  createDataSet: {
    method: 'POST',
    path: '/api/apps/:app/datasets',
    area: 'Data Sets',
    summary: 'Make a data set for inDataset and inCountry, or replace it as a whole',
    description:
      'Entries of `values` are strings, numbers, true and false; of `cidr` "network" or "first,last"; of `ip_country`, of which an application has one, "network,country" or "first,last,country". What the set holds becomes a part of the chain, and is never given out again.',
    access: 'Admin',
    shows: 'outcome',
    status: 201,
    params: AppParams,
    takesRecords: true,
    body: Type.Object({
      name: Name,
      kind: Kind,
      entries: Type.Array(Type.Unknown(), { maxItems: limits.dataSetEntriesMax }),
      public: Type.Optional(
        Type.Boolean({
          description:
            'whether all who may query may look into it; false when not given: keys that may Read alone',
        }),
      ),
    }),
    reply: Type.Object({ ...dataSet, updated: Type.Boolean() }),
    errors: ['APPLICATION_NOT_FOUND', 'CONFLICT'],
  },
  listDataSets: {
    method: 'GET',
    path: '/api/apps/:app/datasets',
    area: 'Data Sets',
    summary: "List the data sets that an application's queries can look into",
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({ datasets: Type.Array(DataSet) }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  getDataSet: {
    method: 'GET',
    path: '/api/apps/:app/datasets/:name',
    area: 'Data Sets',
    summary: 'A data set',
    access: 'Read',
    shows: 'definitions',
    params: NamedParams,
    reply: DataSet,
    errors: ['APPLICATION_NOT_FOUND', 'DATA_SET_NOT_FOUND'],
  },
  deleteDataSet: {
    method: 'DELETE',
    path: '/api/apps/:app/datasets/:name',
    area: 'Data Sets',
    summary: 'Delete a data set of the application',
    access: 'Admin',
    shows: 'outcome',
    params: NamedParams,
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'DATA_SET_NOT_FOUND'],
  },
})
