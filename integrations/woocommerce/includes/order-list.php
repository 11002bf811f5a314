<?php
/**
 * The column and the filter of the list of orders.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/** In both storages of orders: posts, and tables of their own. */
final class Order_List {
	const COLUMN = 'countersign';
	const FILTER = 'countersign_state';
	const GROUPS = array(
		'waiting'    => array( 'none', 'open', 'undecided', 'changed', 'expired', 'cancelled' ),
		'refused'    => array( 'refused', 'declined' ),
		'cleared'    => array( 'cleared', 'not_needed' ),
		'overridden' => array( 'overridden' ),
	);

	/** Add the hooks. */
	public static function register(): void {
		add_filter( 'manage_edit-shop_order_columns', array( self::class, 'add_column' ), 20 );
		add_filter( 'manage_woocommerce_page_wc-orders_columns', array( self::class, 'add_column' ), 20 );
		add_action( 'manage_shop_order_posts_custom_column', array( self::class, 'show' ), 10, 2 );
		add_action( 'manage_woocommerce_page_wc-orders_custom_column', array( self::class, 'show' ), 10, 2 );
		add_action( 'restrict_manage_posts', array( self::class, 'show_filter' ) );
		add_action( 'woocommerce_order_list_table_restrict_manage_orders', array( self::class, 'show_filter' ) );
		add_filter( 'request', array( self::class, 'filter_posts' ) );
		add_filter( 'woocommerce_order_list_table_prepare_items_query_args', array( self::class, 'filter' ) );
	}

	/**
	 * Add the column, after that of the status.
	 *
	 * @param array $columns Labels by name.
	 */
	public static function add_column( $columns ) {
		$made = array();
		foreach ( $columns as $name => $label ) {
			$made[ $name ] = $label;
			if ( 'order_status' === $name ) {
				$made[ self::COLUMN ] = 'Countersign';
			}
		}
		return $made + array( self::COLUMN => 'Countersign' );
	}

	/**
	 * One cell: empty for an order that has nothing to do with it.
	 *
	 * @param string        $column The column.
	 * @param int|\WC_Order $order  The order, or the id of its post.
	 */
	public static function show( $column, $order ): void {
		$order = self::COLUMN === $column && ! is_object( $order ) ? wc_get_order( $order ) : $order;
		$state = self::COLUMN === $column && $order instanceof \WC_Order ? (string) $order->get_meta( State_Machine::STATE ) : '';
		if ( '' === $state ) {
			return;
		}
		$looks = array( 'waiting' => 'status-pending', 'refused' => 'status-failed', 'cleared' => 'status-processing', 'overridden' => 'status-on-hold' );
		$group = key( array_filter( self::GROUPS, static function ( $states ) use ( $state ) {
			return in_array( $state, $states, true );
		} ) );
		echo '<mark class="order-status ' . esc_attr( $looks[ $group ] ?? '' ) . '"><span style="white-space:normal">' . esc_html( Words::state( $state ) ) . '</span></mark>';
	}

	/**
	 * The list to choose from.
	 *
	 * @param string $type What the list shows.
	 */
	public static function show_filter( $type ): void {
		if ( 'shop_order' !== $type ) {
			return;
		}
		$labels = array(
			''           => __( 'Countersign: all', 'countersign-woocommerce' ),
			'waiting'    => __( 'Countersign: waiting', 'countersign-woocommerce' ),
			'refused'    => __( 'Countersign: refused', 'countersign-woocommerce' ),
			'cleared'    => __( 'Countersign: cleared', 'countersign-woocommerce' ),
			'overridden' => __( 'Countersign: manual override', 'countersign-woocommerce' ),
		);
		echo '<select name="' . esc_attr( self::FILTER ) . '" aria-label="Countersign">';
		foreach ( $labels as $group => $label ) {
			echo '<option value="' . esc_attr( $group ) . '"' . selected( self::chosen(), $group, false ) . '>' . esc_html( $label ) . '</option>';
		}
		echo '</select>';
	}

	/** The group that was chosen; empty: all. */
	private static function chosen(): string {
		$group = isset( $_GET[ self::FILTER ] ) ? sanitize_key( wp_unslash( $_GET[ self::FILTER ] ) ) : ''; // phpcs:ignore WordPress.Security.NonceVerification.Recommended -- a filter of a list.
		return isset( self::GROUPS[ $group ] ) ? $group : '';
	}

	/**
	 * Filter the list of posts.
	 *
	 * @param array $query As WordPress has it.
	 */
	public static function filter_posts( $query ) {
		return is_admin() && 'shop_order' === ( $query['post_type'] ?? '' ) ? self::filter( $query ) : $query;
	}

	/**
	 * Filter the list of orders.
	 *
	 * @param array $query For wc_get_orders() or for posts.
	 */
	public static function filter( $query ) {
		if ( '' !== self::chosen() ) {
			$query['meta_query']   = (array) ( $query['meta_query'] ?? array() ); // phpcs:ignore WordPress.DB.SlowDBQuery.slow_db_query_meta_query
			$query['meta_query'][] = array( 'key' => State_Machine::STATE, 'value' => self::GROUPS[ self::chosen() ], 'compare' => 'IN' );
		}
		return $query;
	}

	/**
	 * The orders of a group, newest first.
	 *
	 * @param string $group A key of GROUPS.
	 * @return string[] States by id.
	 */
	public static function find( string $group ): array {
		$orders = wc_get_orders(
			array(
				'limit'        => -1,
				'type'         => 'shop_order',
				'status'       => array_diff( array_keys( wc_get_order_statuses() ), array( 'wc-checkout-draft' ) ),
				'meta_key'     => State_Machine::STATE, // phpcs:ignore WordPress.DB.SlowDBQuery.slow_db_query_meta_key
				'meta_value'   => self::GROUPS[ $group ] ?? array( '' ), // phpcs:ignore WordPress.DB.SlowDBQuery.slow_db_query_meta_value
				'meta_compare' => 'IN',
			)
		);
		$found  = array();
		foreach ( $orders as $order ) {
			$found[ $order->get_id() ] = (string) $order->get_meta( State_Machine::STATE );
		}
		return $found;
	}
}
