import { type TSchema, Type } from 'typebox'
import { limits } from './limits.ts'
import { MapOf } from './schemas.ts'

/**
 * The grammar of a view's definition in its canonical form, as JSON Schema; docs/views.md explains it. A definition
 * that matches the grammar may still be refused: the service checks names, types and the limits of a query.
 */

const closed = { additionalProperties: false } as const
const Expression = Type.Ref('ViewExpression')
const Query = Type.Ref('ViewQuery')
const Order = Type.Ref('ViewOrder')
const Source = Type.Ref('ViewSource')
const Operands = Type.Ref('ViewOperands')
const Literal = Type.Ref('ViewLiteral')
const Window = Type.Ref('ViewWindow')
const Find = Type.Ref('ViewFind')
const FrameEnd = Type.Ref('ViewFrameEnd')
const GroupingForm = Type.Ref('ViewGroupingForm')
const some = { minItems: 1 } as const

/** A schema for an object of one member, whose name matches the pattern. */
const named = (pattern: string, value: TSchema, description?: string) =>
  Type.Record(Type.String({ pattern }), value, {
    ...closed,
    minProperties: 1,
    maxProperties: 1,
    ...(description !== undefined && { description }),
  })

/** A schema for an object of one name, and the names of its columns beside it. */
const withColumns = (value: TSchema, description?: string) =>
  Type.Object(
    { columns: Type.Array(Type.String({ pattern: givenName }), some) },
    {
      patternProperties: { '^(?!columns$)[^$.*][^.]*$': value },
      ...closed,
      minProperties: 2,
      maxProperties: 2,
      ...(description !== undefined && { description }),
    },
  )

/** A name given to a column, a source or a sub-query. */
const givenName = '^[^$.*][^.]*$'
const ViewLiteral = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()])
const ViewOperands = Type.Union([Expression, Type.Array(Expression)])
const ViewFind = MapOf(Type.Unknown(), {
  description: 'conditions as `find` of POST /list has them, without joins',
})

const ViewFrameEnd = Type.Union([
  Type.Literal('unbounded preceding'),
  Type.Literal('current row'),
  Type.Literal('unbounded following'),
  named(
    '^(preceding|following)$',
    Type.Union([
      Type.Number({ minimum: 0, maximum: limits.offsetMax }),
      Type.String({ description: 'an interval, of RANGE' }),
    ]),
  ),
])
const ViewWindow = Type.Object(
  {
    partition_by: Type.Optional(Type.Array(Expression, some)),
    order_by: Type.Optional(Type.Array(Order, some)),
    frame: Type.Optional(
      Type.Object(
        {
          mode: Type.Union([Type.Literal('rows'), Type.Literal('range'), Type.Literal('groups')]),
          from: FrameEnd,
          to: FrameEnd,
          exclude: Type.Optional(
            Type.Union([Type.Literal('current row'), Type.Literal('group'), Type.Literal('ties')]),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
)

const aggregates = [
  'count sum avg min max first last any_value bool_and bool_or every stddev stddev_pop stddev_samp variance',
  'var_pop var_samp string_agg array_agg json_agg jsonb_agg jsonb_object_agg json_object_agg',
  'percentile_cont percentile_disc mode median approx_count_distinct corr covar_pop covar_samp',
  'regr_slope regr_intercept regr_r2',
].flatMap((names) => names.split(' '))
const windows = [
  'row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value',
].flatMap((names) => names.split(' '))
const forms =
  'literal number case cast in like matches find query exists array rollup cube grouping_sets'.split(
    ' ',
  )

const aggregate = (name: string) =>
  Type.Object(
    {
      [`$${name}`]: name === 'count' ? Type.Union([Type.Literal('*'), Operands]) : Operands,
      distinct: Type.Optional(Type.Literal(true)),
      order_by: Type.Optional(Type.Array(Order, some)),
      filter: Type.Optional(Expression),
      over: Type.Optional(Window),
    },
    closed,
  )

const matching = (name: string) =>
  Type.Object(
    {
      [name]: Expression,
      pattern: Type.String(),
      ignore_case: Type.Optional(Type.Literal(true)),
    },
    closed,
  )

const ViewExpression = Type.Union(
  [
    Type.String({
      minLength: 1,
      description: 'the path of a field: `volume`, `t.volume`, `app::collection.volume`',
    }),
    Type.Number(),
    Type.Boolean(),
    Type.Null(),
    Type.Object({ $literal: Literal }, closed),
    Type.Object({ $number: Type.String({ description: 'a number with all its digits' }) }, closed),
    Type.Object(
      {
        $case: Type.Array(Type.Object({ when: Expression, value: Expression }, closed), some),
        else: Type.Optional(Expression),
      },
      closed,
    ),
    Type.Object({ $cast: Expression, to: Type.String() }, closed),
    Type.Object(
      {
        $in: Type.Array(
          Type.Union([
            Expression,
            Type.Array(Expression, some),
            Type.Object({ $literal: Type.Array(Literal, some) }, closed),
            Query,
          ]),
          { minItems: 2, maxItems: 2 },
        ),
      },
      closed,
    ),
    matching('$like'),
    matching('$matches'),
    Type.Object(
      { $find: Find, of: Type.Optional(Type.String()), data: Type.Optional(Type.String()) },
      closed,
    ),
    Type.Object({ $query: Query }, closed),
    Type.Object({ $exists: Query }, closed),
    Type.Object({ $array: Type.Union([Type.Array(Expression, some), Query]) }, closed),
    ...aggregates.map(aggregate),
    Type.Object(
      {
        over: Window,
      },
      {
        patternProperties: {
          [`^\\$(${windows.join('|')})$`]: Operands,
        },
        ...closed,
        minProperties: 2,
        maxProperties: 2,
      },
    ),
    named(
      `^\\$(?!(?:${[...forms, ...aggregates, ...windows].join('|')})$)[a-z_][a-z0-9_]*$`,
      Operands,
      'an operator or a function, with its operands',
    ),
  ],
  { description: 'a value: a field, a constant, or one operator with what belongs to it' },
)

const page = {
  order_by: Type.Optional(Type.Array(Order, some)),
  limit: Type.Optional(Type.Integer({ minimum: 0, maximum: limits.rowsMax })),
  offset: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.offsetMax })),
}
const common = {
  with: Type.Optional(Type.Array(Type.Union([named(givenName, Query), withColumns(Query)]), some)),
}

const ViewGroupingForm = named(
  '^\\$(rollup|cube|grouping_sets)$',
  Type.Array(Type.Union([Expression, GroupingForm, Type.Array(Expression)])),
  'groups by several sets of expressions in turn',
)

const ViewSelect = Type.Object(
  {
    ...common,
    select: Type.Array(
      Type.Union([
        Type.String({ minLength: 1, description: 'a field, `*`, or all fields of a source `t.*`' }),
        named(givenName, Expression, 'a column by its name'),
      ]),
      some,
    ),
    distinct: Type.Optional(Type.Literal(true)),
    distinct_on: Type.Optional(Type.Array(Expression, some)),
    from: Type.Optional(Type.Union([Source, Type.Array(Source, { minItems: 2 })])),
    joins: Type.Optional(Type.Array(Type.Ref('ViewJoin'), some)),
    find: Type.Optional(Find),
    where: Type.Optional(Expression),
    group_by: Type.Optional(Type.Array(Type.Union([Expression, GroupingForm]), some)),
    having: Type.Optional(Expression),
    ...page,
  },
  closed,
)

const sets = ['union', 'union_all', 'intersect', 'intersect_all', 'except', 'except_all'].map(
  (name) => Type.Object({ ...common, [name]: Type.Array(Query, { minItems: 2 }), ...page }, closed),
)

const ViewJoin = Type.Object(
  {
    join: Source,
    type: Type.Union(['inner', 'left', 'right', 'full', 'cross'].map((type) => Type.Literal(type))),
    on: Type.Optional(Expression),
    using: Type.Optional(Type.Array(Type.String({ minLength: 1 }), some)),
  },
  closed,
)

const Rows = Type.Object(
  { ordinality: Type.Optional(Type.Literal(true)) },
  {
    minProperties: 1,
    patternProperties: { '^\\$[a-z_]+$': Operands },
    additionalProperties: false,
    description: 'a function that gives rows, such as {"$unnest": "tags"}',
  },
)
const Lateral = Type.Object(
  { lateral: Query },
  { ...closed, description: 'a query that may use the sources before it' },
)
const Named = Type.Union([Type.String({ minLength: 1 }), Rows, Lateral, Query])
const ViewSource = Type.Union(
  [
    Type.String({ minLength: 1, description: '`app::collection`, or a name that `with` gave' }),
    named(givenName, Named, 'a source by a name'),
    withColumns(Named, 'a source by a name, with names for its columns'),
    Type.Object({ from: Source, joins: Type.Array(Type.Ref('ViewJoin'), some) }, closed),
    Rows,
    Query,
  ],
  { description: 'what rows come from' },
)

const ViewOrder = Type.Union([
  Expression,
  Type.Object(
    {
      by: Expression,
      direction: Type.Optional(Type.Literal('desc')),
      nulls: Type.Optional(Type.Union([Type.Literal('first'), Type.Literal('last')])),
    },
    closed,
  ),
])

/** The query of a view, in canonical form. */
export const ViewQuery = Type.Unsafe<{ readonly [member: string]: unknown }>(
  Type.Cyclic(
    {
      ViewQuery: Type.Union([ViewSelect, ...sets], {
        description: "A view's definition: one SELECT, or a set operation of several",
      }),
      ViewExpression,
      ViewOperands,
      ViewLiteral,
      ViewFind,
      ViewWindow,
      ViewFrameEnd,
      ViewGroupingForm,
      ViewOrder,
      ViewSource,
      ViewJoin,
    },
    'ViewQuery',
  ),
)

/** Builds the grammar as a document of its own, docs/view-query.schema.json: JSON Schema 2020-12. */
export function buildViewQuerySchema(): { readonly [keyword: string]: unknown } {
  const text = JSON.stringify(ViewQuery, (key, value) => {
    if (key === '$id') return undefined
    return key === '$ref' ? `#/$defs/${value}` : value
  })
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...JSON.parse(text) }
}
