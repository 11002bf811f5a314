<?php
/**
 * The class in the list of products: a column, Quick Edit, and the bulk edit.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * WooCommerce has checked who saves, and from where, before it fires the hooks that store.
 */
final class Product_List {

	const KEEP = '-';

	/**
	 * Add the hooks.
	 */
	public static function register(): void {
		add_filter( 'manage_edit-product_columns', array( self::class, 'add_column' ), 20 );
		add_action( 'manage_product_posts_custom_column', array( self::class, 'show' ), 10, 2 );
		add_action( 'woocommerce_product_quick_edit_end', array( self::class, 'show_field' ) );
		add_action( 'woocommerce_product_bulk_edit_end', array( self::class, 'show_field' ) );
		add_action( 'woocommerce_product_quick_edit_save', array( self::class, 'save' ) );
		add_action( 'woocommerce_product_bulk_edit_save', array( self::class, 'save' ) );
	}

	/**
	 * Add the column.
	 *
	 * @param array $columns Labels by name.
	 */
	public static function add_column( $columns ) {
		return $columns + array( 'countersign' => __( 'Countersign class', 'countersign-woocommerce' ) );
	}

	/**
	 * One cell: what counts, also if it is that of a category.
	 *
	 * @param string $column     The column.
	 * @param int    $product_id The product.
	 */
	public static function show( $column, $product_id ): void {
		if ( 'countersign' === $column ) {
			echo esc_html( Words::classes( Products::classes_of( array( (int) $product_id ) ) ) );
		}
	}

	/**
	 * The field of both forms. It stands at “no change”, so that nothing is lost by saving something else.
	 */
	public static function show_field(): void {
		echo '<label class="alignleft" style="clear:both"><span class="title">' . esc_html__( 'Countersign class', 'countersign-woocommerce' ) . '</span><span class="input-text-wrap"><select name="' . esc_attr( Products::META ) . '">';
		echo '<option value="' . esc_attr( self::KEEP ) . '">' . esc_html__( '— No change —', 'countersign-woocommerce' ) . '</option>';
		foreach ( Products::choices() as $class => $label ) {
			echo '<option value="' . esc_attr( $class ) . '">' . esc_html( $label ) . '</option>';
		}
		echo '</select></span></label>';
	}

	/**
	 * Store the field of a product.
	 *
	 * @param \WC_Product $product The product.
	 */
	public static function save( $product ): void {
		$class = wp_unslash( $_REQUEST[ Products::META ] ?? self::KEEP ); // phpcs:ignore WordPress.Security -- WooCommerce has checked the nonce, and only one of the choices is stored.
		if ( is_string( $class ) && array_key_exists( $class, Products::choices() ) && current_user_can( 'edit_product', $product->get_id() ) ) {
			$product->update_meta_data( Products::META, $class );
			$product->save_meta_data();
		}
	}
}
